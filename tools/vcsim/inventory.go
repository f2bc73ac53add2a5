package main

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// inventory changes properties of hosts and VMs, as hardware, guests and administrators would, and notifies property collectors.
type inventory struct {
	service *simulator.Service
}

type hostState struct {
	Gpus          *int    `json:"gpus"`
	GpuModel      *string `json:"gpuModel"`
	GpuMode       *string `json:"gpuMode"`
	Maintenance   *bool   `json:"maintenance"`
	Connection    *string `json:"connection"`
	CPUUsageMhz   *int32  `json:"cpuUsageMhz"`
	MemoryUsageMb *int32  `json:"memoryUsageMb"`
	// Attributes are custom attributes by name; an empty value removes one.
	Attributes *map[string]string `json:"attributes"`
}

type vmState struct {
	CPUUsageMhz   *int32  `json:"cpuUsageMhz"`
	CPUDemandMhz  *int32  `json:"cpuDemandMhz"`
	GuestMemoryMb *int32  `json:"guestMemoryMb"`
	HostMemoryMb  *int32  `json:"hostMemoryMb"`
	IP            *string `json:"ip"`
	UUID          *string `json:"uuid"`
	InstanceUUID  *string `json:"instanceUuid"`
	// Host is the name or reference of the host that the VM moves to.
	Host *string `json:"host"`
	// PciDevices replaces the attached PCI devices.
	PciDevices *[]pciDevice `json:"pciDevices"`
}

func (s hostState) check() error {
	connections := []string{
		string(types.HostSystemConnectionStateConnected),
		string(types.HostSystemConnectionStateDisconnected),
		string(types.HostSystemConnectionStateNotResponding),
	}
	switch {
	case s == hostState{}:
		return errors.New("the request changes nothing; set at least one field of the host")
	case s.Gpus != nil && (*s.Gpus < 0 || *s.Gpus > maxGpus):
		return fmt.Errorf("gpus must be between 0 and %d, not %d", maxGpus, *s.Gpus)
	case s.GpuModel != nil && s.Gpus == nil:
		return errors.New("gpuModel requires gpus, the number of GPUs")
	case s.GpuMode != nil && s.Gpus == nil:
		return errors.New("gpuMode requires gpus, the number of GPUs")
	case s.GpuMode != nil && gpuModes[*s.GpuMode] == "":
		return fmt.Errorf("gpuMode must be passthrough, vgpu or graphics, not %q", *s.GpuMode)
	case s.Connection != nil && !slices.Contains(connections, *s.Connection):
		return fmt.Errorf("connection must be one of %v, not %q", connections, *s.Connection)
	}
	return notNegative(map[string]*int32{"cpuUsageMhz": s.CPUUsageMhz, "memoryUsageMb": s.MemoryUsageMb})
}

func (s vmState) check() error {
	switch {
	case s == vmState{}:
		return errors.New("the request changes nothing; set at least one field of the virtual machine")
	case s.IP != nil && *s.IP != "" && net.ParseIP(*s.IP) == nil:
		return fmt.Errorf("ip must be an IP address, or empty to remove it, not %q", *s.IP)
	}
	if s.PciDevices != nil {
		for _, device := range *s.PciDevices {
			if err := device.check(); err != nil {
				return err
			}
		}
	}
	return notNegative(map[string]*int32{
		"cpuUsageMhz": s.CPUUsageMhz, "cpuDemandMhz": s.CPUDemandMhz,
		"guestMemoryMb": s.GuestMemoryMb, "hostMemoryMb": s.HostMemoryMb,
	})
}

func (i *inventory) setHost(name string, state hostState) error {
	found, err := i.find("HostSystem", "host", name)
	if err != nil {
		return err
	}
	host := found.(*simulator.HostSystem)
	var attributes []types.BaseCustomFieldValue
	if state.Attributes != nil {
		attributes = i.attributes(host, *state.Attributes)
	}
	i.update(host, func(changes *changes) {
		if state.Gpus != nil {
			model, mode := defaultGpuModel, "passthrough"
			if state.GpuModel != nil {
				model = *state.GpuModel
			}
			if state.GpuMode != nil {
				mode = *state.GpuMode
			}
			changes.gpus(host.Hardware.PciDevice, *state.Gpus, model, mode)
		}
		if state.Attributes != nil {
			changes.set("customValue", attributes)
			changes.set("value", attributes)
			changes.set("summary.customValue", attributes)
		}
		if state.Maintenance != nil {
			changes.set("runtime.inMaintenanceMode", *state.Maintenance)
			changes.set("summary.runtime.inMaintenanceMode", *state.Maintenance)
		}
		if state.Connection != nil {
			connection := types.HostSystemConnectionState(*state.Connection)
			changes.set("runtime.connectionState", connection)
			changes.set("summary.runtime.connectionState", connection)
		}
		changes.setInt("summary.quickStats.overallCpuUsage", state.CPUUsageMhz)
		changes.setInt("summary.quickStats.overallMemoryUsage", state.MemoryUsageMb)
	})
	return nil
}

func (i *inventory) setVM(name string, state vmState) error {
	found, err := i.find("VirtualMachine", "virtual machine", name)
	if err != nil {
		return err
	}
	vm := found.(*simulator.VirtualMachine)
	if state.Host != nil {
		if err := i.move(vm, *state.Host); err != nil {
			return err
		}
	}
	i.update(vm, func(changes *changes) {
		for path, uuid := range map[string]*string{"uuid": state.UUID, "instanceUuid": state.InstanceUUID} {
			if uuid != nil {
				changes.set("config."+path, *uuid)
				changes.set("summary.config."+path, *uuid)
			}
		}
		if state.PciDevices != nil {
			changes.pciDevices(vm.Config.Hardware.Device, *state.PciDevices)
		}
		changes.setInt("summary.quickStats.overallCpuUsage", state.CPUUsageMhz)
		changes.setInt("summary.quickStats.overallCpuDemand", state.CPUDemandMhz)
		changes.setInt("summary.quickStats.guestMemoryUsage", state.GuestMemoryMb)
		changes.setInt("summary.quickStats.hostMemoryUsage", state.HostMemoryMb)
		if state.IP != nil {
			changes.set("guest.ipAddress", *state.IP)
			changes.set("summary.guest.ipAddress", *state.IP)
			if nics := slices.Clone(vm.Guest.Net); len(nics) > 0 {
				nics[0].IpAddress = nil
				if *state.IP != "" {
					nics[0].IpAddress = []string{*state.IP}
				}
				changes.set("guest.net", nics)
			}
		}
	})
	return nil
}

// move moves a VM to another host. The simulator's RelocateVM_Task does not move it between the hosts' lists of VMs, and notifies
// no watcher of these lists.
func (i *inventory) move(vm *simulator.VirtualMachine, name string) error {
	found, err := i.find("HostSystem", "host", name)
	if err != nil {
		return err
	}
	host, self := found.Reference(), vm.Reference()
	var from types.ManagedObjectReference
	i.update(vm, func(changes *changes) {
		from = *vm.Runtime.Host
		changes.set("runtime.host", host)
		changes.set("summary.runtime.host", host)
	})
	for _, reference := range []types.ManagedObjectReference{from, host} {
		each := i.context().Map.Get(reference).(*simulator.HostSystem)
		i.update(each, func(changes *changes) {
			vms := slices.DeleteFunc(slices.Clone(each.Vm), func(other types.ManagedObjectReference) bool { return other == self })
			if reference == host {
				vms = append(vms, self)
			}
			changes.set("vm", vms)
		})
	}
	return nil
}

// attributes returns the custom attributes of a host after a change. It defines attributes that do not exist.
func (i *inventory) attributes(host *simulator.HostSystem, wanted map[string]string) []types.BaseCustomFieldValue {
	ctx := i.context()
	var values []types.BaseCustomFieldValue
	ctx.WithLock(host, func() { values = slices.Clone(host.CustomValue) })
	manager := ctx.Map.CustomFieldsManager()
	i.update(manager, func(changes *changes) {
		for name, value := range wanted {
			index := slices.IndexFunc(manager.Field, func(field types.CustomFieldDef) bool { return field.Name == name })
			if index < 0 {
				manager.AddCustomFieldDef(ctx, &types.AddCustomFieldDef{Name: name})
				index = len(manager.Field) - 1
			}
			key := manager.Field[index].Key
			values = slices.DeleteFunc(values, func(other types.BaseCustomFieldValue) bool {
				return other.GetCustomFieldValue().Key == key
			})
			if value != "" {
				values = append(values, &types.CustomFieldStringValue{
					CustomFieldValue: types.CustomFieldValue{Key: key}, Value: value,
				})
			}
		}
		changes.set("field", slices.Clone(manager.Field))
	})
	return values
}

type changes []types.PropertyChange

func (c *changes) set(name string, value any) {
	*c = append(*c, types.PropertyChange{Name: name, Val: value})
}

func (c *changes) setInt(name string, value *int32) {
	if value != nil {
		c.set(name, *value)
	}
}

func (i *inventory) update(object mo.Reference, describe func(*changes)) {
	ctx := i.context()
	ctx.WithLock(object, func() {
		var changes changes
		describe(&changes)
		ctx.Update(object, changes)
	})
}

// context returns a new context each time, because a lock does not exclude callers that share a context.
func (i *inventory) context() *simulator.Context {
	ctx := *i.service.Context
	return &ctx
}

// find returns the object with the name or, because names need not be unique, with the reference, such as vm-54.
func (i *inventory) find(kind, displayName, name string) (mo.Reference, error) {
	var found []mo.Entity
	ctx := i.context()
	for _, object := range ctx.Map.All(kind) {
		if object.Reference().Value == name {
			return object, nil
		}
		// Waits for the lock of the folder, which is held until all fields of a newly registered VM are set.
		if parent := object.Entity().Parent; parent != nil {
			ctx.WithLock(parent, func() {})
		}
		if nameOf(ctx, object.Reference()) == name {
			found = append(found, object)
		}
	}
	switch len(found) {
	case 0:
		return nil, notFound("%s %q not found", displayName, name)
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("%d objects are named %q; use a reference, such as %s",
		len(found), name, found[0].Reference().Value)
}

func nameOf(ctx *simulator.Context, reference types.ManagedObjectReference) string {
	object, ok := ctx.Map.Get(reference).(mo.Entity)
	if !ok {
		return ""
	}
	name := ""
	ctx.WithLock(object, func() { name = object.Entity().Name })
	return name
}

func notNegative(numbers map[string]*int32) error {
	for name, number := range numbers {
		if number != nil && *number < 0 {
			return fmt.Errorf("%s must not be negative, but is %d", name, *number)
		}
	}
	return nil
}
