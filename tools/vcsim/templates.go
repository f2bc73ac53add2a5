package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// makeTemplates turns VMs of the initial inventory into templates with the given comma-separated names. It takes the last VMs by
// name, so that the names of the others are the same at each start.
func (i *inventory) makeTemplates(names string) error {
	machines := i.context().Map.All("VirtualMachine")
	slices.SortFunc(machines, func(one, other mo.Entity) int { return cmp.Compare(other.Entity().Name, one.Entity().Name) })
	for index, name := range strings.FieldsFunc(names, func(r rune) bool { return r == ',' }) {
		if index >= len(machines) {
			return fmt.Errorf("-templates requires at least %d virtual machines, but the inventory has %d", index+1, len(machines))
		}
		vm := machines[index].(*simulator.VirtualMachine)
		i.update(vm, func(changes *changes) {
			changes.set("name", name)
			changes.set("config.name", name)
			changes.set("summary.config.name", name)
			changes.set("config.template", true)
			changes.set("summary.config.template", true)
			changes.set("runtime.powerState", types.VirtualMachinePowerStatePoweredOff)
			changes.set("summary.runtime.powerState", types.VirtualMachinePowerStatePoweredOff)
		})
	}
	return nil
}
