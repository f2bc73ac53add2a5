package main

import (
	"reflect"
	"slices"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// filterState has the objects and their properties that one filter has reported to the client.
//
// The simulator's own collector traverses everything that a filter selects for every change of any object and copies each object
// through XML; with fifty VMs a response takes seconds. Here a response needs one traversal without copies and one read of each
// new or changed object.
type filterState map[types.ManagedObjectReference]map[string]types.AnyType

// isAffected returns whether a change may affect the filter: the object was reported, or the traversal may pass through it.
func (s filterState) isAffected(spec types.PropertyFilterSpec, refs map[types.ManagedObjectReference]struct{}) bool {
	for ref := range refs {
		if _, reported := s[ref]; reported {
			return true
		}
		for _, object := range spec.ObjectSet {
			if object.Obj == ref || traverses(object.SelectSet, ref.Type) {
				return true
			}
			// The simulator changes a host's list of VMs without notification when it creates or removes a VM.
			if ref.Type == "VirtualMachine" && traverses(object.SelectSet, "HostSystem") {
				return true
			}
		}
	}
	return false
}

func traverses(selects []types.BaseSelectionSpec, kind string) bool {
	return slices.ContainsFunc(selects, func(each types.BaseSelectionSpec) bool {
		step, ok := each.(*types.TraversalSpec)
		// A traversal may name a base type: ComputeResource for ClusterComputeResource, ManagedEntity for all.
		return ok && (strings.HasSuffix(kind, step.Type) || step.Type == "ManagedEntity" || traverses(step.SelectSet, kind))
	})
}

// update returns the updates since the last call and records them as reported.
func (s filterState) update(
	read func(types.PropertyFilterSpec) ([]types.ObjectContent, *soap.Fault),
	spec types.PropertyFilterSpec,
	changed *changedObjects,
	refs map[types.ManagedObjectReference]struct{},
) ([]types.ObjectUpdate, *soap.Fault) {
	selected, fault := read(withoutProperties(spec))
	if fault != nil {
		return nil, fault
	}
	var updates []types.ObjectUpdate
	present := map[types.ManagedObjectReference]struct{}{}
	var wanted []types.ObjectSpec
	for _, object := range selected {
		if changed.isRemoved(object.Obj) {
			continue
		}
		present[object.Obj] = struct{}{}
		_, isReported := s[object.Obj]
		_, isChanged := refs[object.Obj]
		if !isReported || isChanged {
			wanted = append(wanted, types.ObjectSpec{Obj: object.Obj})
		}
	}
	for ref := range s {
		if _, isPresent := present[ref]; !isPresent {
			delete(s, ref)
			updates = append(updates, types.ObjectUpdate{Kind: types.ObjectUpdateKindLeave, Obj: ref})
		}
	}
	if len(wanted) == 0 {
		return updates, nil
	}
	objects, fault := read(types.PropertyFilterSpec{
		PropSet: spec.PropSet, ObjectSet: wanted, ReportMissingObjectsInResults: types.NewBool(true),
	})
	if fault != nil {
		return nil, fault
	}
	for _, object := range objects {
		if update := s.report(object); update != nil {
			updates = append(updates, *update)
		}
	}
	return updates, nil
}

// report records the object's properties and returns the update for the client, or nil if nothing changed.
func (s filterState) report(object types.ObjectContent) *types.ObjectUpdate {
	before, isReported := s[object.Obj]
	after := make(map[string]types.AnyType, len(object.PropSet))
	update := &types.ObjectUpdate{Kind: types.ObjectUpdateKindEnter, Obj: object.Obj}
	if isReported {
		update.Kind = types.ObjectUpdateKindModify
	}
	for _, property := range object.PropSet {
		after[property.Name] = property.Val
		if known, has := before[property.Name]; !has || !reflect.DeepEqual(known, property.Val) {
			update.ChangeSet = append(update.ChangeSet, assign(property.Name, property.Val))
		}
	}
	for name := range before {
		if _, has := after[name]; !has {
			update.ChangeSet = append(update.ChangeSet, assign(name, nil))
		}
	}
	s[object.Obj] = after
	if isReported && len(update.ChangeSet) == 0 {
		return nil
	}
	return update
}

func assign(name string, value types.AnyType) types.PropertyChange {
	return types.PropertyChange{Name: name, Op: types.PropertyChangeOpAssign, Val: value}
}

// withoutProperties returns a spec that selects the same objects without their properties.
func withoutProperties(spec types.PropertyFilterSpec) types.PropertyFilterSpec {
	kinds := make([]types.PropertySpec, 0, len(spec.PropSet))
	for _, each := range spec.PropSet {
		kinds = append(kinds, types.PropertySpec{Type: each.Type})
	}
	spec.PropSet = kinds
	return spec
}

// reader returns a function that reads properties with the client's session.
func (c *collector) reader(ctx *simulator.Context) func(types.PropertyFilterSpec) ([]types.ObjectContent, *soap.Fault) {
	return func(spec types.PropertyFilterSpec) ([]types.ObjectContent, *soap.Fault) {
		body := c.RetrievePropertiesEx(ctx, &types.RetrievePropertiesEx{
			This: c.Self, SpecSet: []types.PropertyFilterSpec{spec},
		})
		if fault := body.Fault(); fault != nil {
			return nil, fault
		}
		return body.(*methods.RetrievePropertiesExBody).Res.Returnval.Objects, nil
	}
}
