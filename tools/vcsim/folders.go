package main

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// folder adds UnregisterAndDestroy_Task, which the simulator lacks, to one of its folders.
type folder struct {
	*simulator.Folder
}

// folderHandler returns the object that handles a call that the simulator's folders do not support, or nil for other calls.
func folderHandler(ctx *simulator.Context, method *simulator.Method) mo.Reference {
	if method.Name != "UnregisterAndDestroy_Task" || ctx.Session == nil {
		return nil
	}
	found, ok := ctx.Map.Get(method.This).(*simulator.Folder)
	if !ok {
		return nil
	}
	// The extended folder is stored in the session's registry, because the simulator prefers an object there to the one that
	// the handler returns.
	extended := &folder{found}
	ctx.Session.Registry.Put(extended)
	return extended
}

// UnregisterAndDestroyTask unregisters the VMs in the folder, keeping their files, and removes the folder.
func (f *folder) UnregisterAndDestroyTask(
	ctx *simulator.Context, request *types.UnregisterAndDestroy_Task,
) soap.HasFault {
	defer ctx.Session.Registry.Remove(ctx, request.This)
	body := &methods.UnregisterAndDestroy_TaskBody{}
	for _, child := range append([]types.ManagedObjectReference{}, f.ChildEntity...) {
		vm, ok := ctx.Map.Get(child).(*simulator.VirtualMachine)
		if !ok {
			continue
		}
		var response soap.HasFault
		ctx.WithLock(vm, func() { response = vm.UnregisterVM(ctx, &types.UnregisterVM{This: child}) })
		if body.Fault_ = response.Fault(); body.Fault_ != nil {
			return body
		}
	}
	destroyed := f.DestroyTask(ctx, &types.Destroy_Task{This: request.This})
	body.Res = &types.UnregisterAndDestroy_TaskResponse{
		Returnval: destroyed.(*methods.Destroy_TaskBody).Res.Returnval,
	}
	return body
}
