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

// telling is what a client was told by one filter: the objects, and the properties of each.
//
// The simulator's own collector goes through all that a filter selects once for every change of any object, whatever it
// is of, and copies each object by writing and reading it as XML: with fifty machines an answer is seconds late. Here
// an answer takes one walk, which copies nothing, and one look at each object that is new or was touched.
type telling map[types.ManagedObjectReference]map[string]types.AnyType

// isTouched says whether a filter may have something to tell: of what it has told, or of what its way leads over.
func (t telling) isTouched(spec types.PropertyFilterSpec, refs map[types.ManagedObjectReference]struct{}) bool {
	for ref := range refs {
		if _, told := t[ref]; told {
			return true
		}
		for _, object := range spec.ObjectSet {
			if object.Obj == ref || leadsOver(object.SelectSet, ref.Type) {
				return true
			}
		}
	}
	return false
}

func leadsOver(selects []types.BaseSelectionSpec, kind string) bool {
	return slices.ContainsFunc(selects, func(each types.BaseSelectionSpec) bool {
		step, ok := each.(*types.TraversalSpec)
		// A step may name a base: ComputeResource is one of ClusterComputeResource, ManagedEntity of all.
		return ok && (strings.HasSuffix(kind, step.Type) || step.Type == "ManagedEntity" || leadsOver(step.SelectSet, kind))
	})
}

// next gives what the client does not know yet, and takes it for told.
func (t telling) next(
	look func(types.PropertyFilterSpec) ([]types.ObjectContent, *soap.Fault),
	spec types.PropertyFilterSpec,
	touched *touched,
	refs map[types.ManagedObjectReference]struct{},
) ([]types.ObjectUpdate, *soap.Fault) {
	selected, fault := look(bare(spec))
	if fault != nil {
		return nil, fault
	}
	var updates []types.ObjectUpdate
	there := map[types.ManagedObjectReference]struct{}{}
	var wanted []types.ObjectSpec
	for _, object := range selected {
		if touched.isRemoved(object.Obj) {
			continue
		}
		there[object.Obj] = struct{}{}
		_, isTold := t[object.Obj]
		_, isTouched := refs[object.Obj]
		if !isTold || isTouched {
			wanted = append(wanted, types.ObjectSpec{Obj: object.Obj})
		}
	}
	for ref := range t {
		if _, stays := there[ref]; !stays {
			delete(t, ref)
			updates = append(updates, types.ObjectUpdate{Kind: types.ObjectUpdateKindLeave, Obj: ref})
		}
	}
	if len(wanted) == 0 {
		return updates, nil
	}
	seen, fault := look(types.PropertyFilterSpec{
		PropSet: spec.PropSet, ObjectSet: wanted, ReportMissingObjectsInResults: types.NewBool(true),
	})
	if fault != nil {
		return nil, fault
	}
	for _, object := range seen {
		if update := t.tell(object); update != nil {
			updates = append(updates, *update)
		}
	}
	return updates, nil
}

func (t telling) tell(object types.ObjectContent) *types.ObjectUpdate {
	before, isTold := t[object.Obj]
	after := make(map[string]types.AnyType, len(object.PropSet))
	update := &types.ObjectUpdate{Kind: types.ObjectUpdateKindEnter, Obj: object.Obj}
	if isTold {
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
	t[object.Obj] = after
	if isTold && len(update.ChangeSet) == 0 {
		return nil
	}
	return update
}

func assign(name string, value types.AnyType) types.PropertyChange {
	return types.PropertyChange{Name: name, Op: types.PropertyChangeOpAssign, Val: value}
}

// bare selects the same objects, without their properties.
func bare(spec types.PropertyFilterSpec) types.PropertyFilterSpec {
	kinds := make([]types.PropertySpec, 0, len(spec.PropSet))
	for _, each := range spec.PropSet {
		kinds = append(kinds, types.PropertySpec{Type: each.Type})
	}
	spec.PropSet = kinds
	return spec
}

// look reads in the name of the client that has the collector.
func (c *collector) look(ctx *simulator.Context) func(types.PropertyFilterSpec) ([]types.ObjectContent, *soap.Fault) {
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
