package main

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// gatherTime is how long a call that waits lets changes gather: what is done to a machine is many of them.
const gatherTime = 5 * time.Millisecond

// forever is how long a call waits that says nothing of it.
const forever = 24 * time.Hour

// mostUpdates is vCenter's own limit of what an answer has.
const mostUpdates = 100

// collector is the simulator's PropertyCollector with a waiting of its own. A client whose connection broke asks again
// with the version it has, and is given what it missed; one that asks without a version is told everything. The
// simulator knows no versions, tells an object once, and a call whose client is gone waits on, takes the next updates
// and gives them to nobody.
//
// Sessions get theirs by reflection, as a zero value: hence no constructor arguments.
type collector struct {
	simulator.PropertyCollector

	newest  atomic.Int64 // the call that may wait; an older one ends
	touched touched
	turn    sync.Mutex // of whoever works with the filters, and with what follows
	version int
	last    *types.UpdateSet // what led to version, for the client that did not get it
	// filters are those that a client created. The simulator's own list shifts its elements when a filter is destroyed,
	// also while gather goes through it, which then skips a filter and loses its changes.
	filters []types.ManagedObjectReference
	told    map[types.ManagedObjectReference]telling
	rest    []types.PropertyFilterUpdate // did not fit into the last answer
}

func newCollector(self types.ManagedObjectReference) *collector {
	c := &collector{}
	c.Self = self
	return c
}

func (c *collector) PutObject(_ *simulator.Context, object mo.Reference) {
	c.touched.add(object.Reference())
}

func (c *collector) UpdateObject(_ *simulator.Context, object mo.Reference, _ []types.PropertyChange) {
	c.touched.add(object.Reference())
}

func (c *collector) RemoveObject(_ *simulator.Context, object types.ManagedObjectReference) {
	c.touched.remove(object)
}

func (c *collector) WaitForUpdatesEx(ctx *simulator.Context, request *types.WaitForUpdatesEx) soap.HasFault {
	me := c.supersede()
	caller := callerOf(ctx, c.Self)
	limit := forever
	most := mostUpdates
	if request.Options != nil {
		if wanted := int(request.Options.MaxObjectUpdates); wanted > 0 {
			most = min(most, wanted)
		}
		if seconds := request.Options.MaxWaitSeconds; seconds != nil {
			limit = time.Duration(*seconds) * time.Second
		}
	}
	over := time.After(limit)

	changed := c.touched.next()
	for body := c.begin(ctx, request.Version, most); ; body = c.advance(ctx, most) {
		if body != nil {
			return body
		}
		if limit == 0 {
			return nothing()
		}
		select {
		case <-caller.Done():
		case <-over:
			return nothing()
		case <-changed:
			time.Sleep(gatherTime)
		}
		changed = c.touched.next()
		switch {
		case errors.Is(context.Cause(caller), errSessionExpired):
			return waitFault(&types.NotAuthenticated{
				NoPermission: types.NoPermission{Object: &c.Self, PrivilegeId: "System.View"},
			})
		case caller.Err() != nil, c.newest.Load() != me:
			return waitFault(&types.RequestCanceled{})
		}
	}
}

// begin answers what needs no waiting: the first call, one that asks again, one with a wrong version, and one for what
// has changed already, or is the rest of an answer.
func (c *collector) begin(ctx *simulator.Context, version string, most int) soap.HasFault {
	if version == "" {
		return c.beginAnew(ctx, most)
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	switch {
	case version == strconv.Itoa(c.version):
		return c.next(ctx, most)
	case version == strconv.Itoa(c.version-1) && c.last != nil:
		return &methods.WaitForUpdatesExBody{Res: &types.WaitForUpdatesExResponse{Returnval: c.last}}
	}
	return waitFault(&types.InvalidCollectorVersion{})
}

// beginAnew tells everything, whatever was told before: its answer may never have come.
func (c *collector) beginAnew(ctx *simulator.Context, most int) soap.HasFault {
	c.turn.Lock()
	defer c.turn.Unlock()
	ctx.Map.AddHandler(c) // before it looks, so that nothing changes unseen in between
	c.told = map[types.ManagedObjectReference]telling{}
	c.rest = nil
	if fault := c.gather(ctx); fault != nil {
		return &methods.WaitForUpdatesExBody{Fault_: fault}
	}
	body := c.answer(most)
	c.last = nil // asked for by no version
	return body
}

func (c *collector) advance(ctx *simulator.Context, most int) soap.HasFault {
	c.turn.Lock()
	defer c.turn.Unlock()
	return c.next(ctx, most)
}

// next looks once. Nil means that there is nothing new.
func (c *collector) next(ctx *simulator.Context, most int) soap.HasFault {
	if len(c.rest) > 0 {
		return c.answer(most)
	}
	if fault := c.gather(ctx); fault != nil {
		return &methods.WaitForUpdatesExBody{Fault_: fault}
	}
	if len(c.rest) == 0 {
		return nil
	}
	return c.answer(most)
}

// gather adds to the rest what every filter has to tell.
func (c *collector) gather(ctx *simulator.Context) *soap.Fault {
	refs := c.touched.take()
	c.filters = slices.DeleteFunc(c.filters, func(reference types.ManagedObjectReference) bool {
		_, ok := ctx.Session.Get(reference).(*simulator.PropertyFilter)
		return !ok
	})
	for _, reference := range c.filters {
		filter, ok := ctx.Session.Get(reference).(*simulator.PropertyFilter)
		if !ok {
			continue
		}
		spec := filter.Spec
		told := c.told[reference]
		switch {
		case told == nil:
			told = telling{}
		case !told.isTouched(spec, refs):
			continue
		default:
			spec.ReportMissingObjectsInResults = types.NewBool(true) // what was there and is gone has left
		}
		updates, fault := told.next(c.look(ctx), spec, &c.touched, refs)
		if fault != nil {
			return fault
		}
		c.told[reference] = told
		if len(updates) > 0 {
			c.rest = append(c.rest, types.PropertyFilterUpdate{Filter: reference, ObjectSet: updates})
		}
	}
	return nil
}

// answer tells as much of the rest as an answer may have.
func (c *collector) answer(most int) soap.HasFault {
	c.version++
	c.last = &types.UpdateSet{Version: strconv.Itoa(c.version)}
	for len(c.rest) > 0 && most > 0 {
		its := &c.rest[0]
		count := min(most, len(its.ObjectSet))
		c.last.FilterSet = append(c.last.FilterSet, types.PropertyFilterUpdate{
			Filter: its.Filter, ObjectSet: its.ObjectSet[:count],
		})
		its.ObjectSet = its.ObjectSet[count:]
		most -= count
		if len(its.ObjectSet) == 0 {
			c.rest = c.rest[1:]
		}
	}
	if len(c.rest) > 0 {
		c.last.Truncated = types.NewBool(true)
	}
	return &methods.WaitForUpdatesExBody{Res: &types.WaitForUpdatesExResponse{Returnval: c.last}}
}

func (c *collector) CancelWaitForUpdates(*types.CancelWaitForUpdates) soap.HasFault {
	c.supersede()
	return &methods.CancelWaitForUpdatesBody{Res: &types.CancelWaitForUpdatesResponse{}}
}

func (c *collector) CreateFilter(ctx *simulator.Context, request *types.CreateFilter) soap.HasFault {
	c.turn.Lock()
	defer c.turn.Unlock()
	body := c.PropertyCollector.CreateFilter(ctx, request)
	if body.Fault() == nil {
		// The simulator's filter notices changes for the simulator's way of telling them, with a lock that, together with
		// the lock of whoever changes something, lets neither go on. Here it only holds what is wanted.
		reference := body.(*methods.CreateFilterBody).Res.Returnval
		ctx.Map.RemoveHandler(ctx.Session.Get(reference).(*simulator.PropertyFilter))
		c.filters = append(c.filters, reference)
		c.touched.wake() // it has something to tell
	}
	return body
}

func (c *collector) CreatePropertyCollector(
	ctx *simulator.Context, _ *types.CreatePropertyCollector,
) soap.HasFault {
	created := newCollector(types.ManagedObjectReference{Type: c.Self.Type})
	return &methods.CreatePropertyCollectorBody{
		Res: &types.CreatePropertyCollectorResponse{Returnval: ctx.Session.Put(created).Reference()},
	}
}

func (c *collector) DestroyPropertyCollector(
	ctx *simulator.Context, request *types.DestroyPropertyCollector,
) soap.HasFault {
	c.supersede()
	c.turn.Lock()
	defer c.turn.Unlock()
	return c.PropertyCollector.DestroyPropertyCollector(ctx, request)
}

// supersede ends the call that waits. It gives the number by which the next one knows that it is still the newest.
func (c *collector) supersede() int64 {
	me := c.newest.Add(1)
	c.touched.wake()
	return me
}

func nothing() soap.HasFault {
	return &methods.WaitForUpdatesExBody{Res: &types.WaitForUpdatesExResponse{}}
}

func waitFault(fault types.BaseMethodFault) soap.HasFault {
	return &methods.WaitForUpdatesExBody{Fault_: simulator.Fault("", fault)}
}
