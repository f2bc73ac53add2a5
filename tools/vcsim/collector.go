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

// gatherTime is how long a waiting call collects changes before it responds, because one operation changes many properties.
const gatherTime = 5 * time.Millisecond

// forever is the timeout of a call without MaxWaitSeconds.
const forever = 24 * time.Hour

// maxUpdates is vCenter's limit of object updates per response.
const maxUpdates = 100

// collector replaces WaitForUpdatesEx of the simulator's PropertyCollector. As in vCenter, a client that lost its connection calls
// again with its last version and gets the updates that it missed, and a call without a version returns everything. The
// simulator's WaitForUpdatesEx has no versions and reports each change once. After a client has disconnected, its call there
// keeps waiting and consumes the next updates.
//
// The simulator creates the collectors of sessions by reflection, so the zero value must be usable.
type collector struct {
	simulator.PropertyCollector

	newest  atomic.Int64 // number of the latest call; older calls end
	changed changedObjects
	mu      sync.Mutex // guards the fields below and the filters
	version int
	last    *types.UpdateSet // updates of the current version, for a client that lost the response
	// filters are the filters that the client created. The simulator's own list shifts its elements when a filter is destroyed,
	// even while gather iterates over it, which would skip a filter and lose its changes.
	filters  []types.ManagedObjectReference
	reported map[types.ManagedObjectReference]filterState
	pending  []types.PropertyFilterUpdate // did not fit into the last response
}

func newCollector(self types.ManagedObjectReference) *collector {
	c := &collector{}
	c.Self = self
	return c
}

func (c *collector) PutObject(_ *simulator.Context, object mo.Reference) {
	c.changed.add(object.Reference())
}

func (c *collector) UpdateObject(_ *simulator.Context, object mo.Reference, _ []types.PropertyChange) {
	c.changed.add(object.Reference())
}

func (c *collector) RemoveObject(_ *simulator.Context, object types.ManagedObjectReference) {
	c.changed.remove(object)
}

func (c *collector) WaitForUpdatesEx(ctx *simulator.Context, request *types.WaitForUpdatesEx) soap.HasFault {
	number := c.supersede()
	caller := callerOf(ctx, c.Self)
	timeout := forever
	limit := maxUpdates
	if request.Options != nil {
		if wanted := int(request.Options.MaxObjectUpdates); wanted > 0 {
			limit = min(limit, wanted)
		}
		if seconds := request.Options.MaxWaitSeconds; seconds != nil {
			timeout = time.Duration(*seconds) * time.Second
		}
	}
	timedOut := time.After(timeout)

	changed := c.changed.next()
	for body := c.begin(ctx, request.Version, limit); ; body = c.advance(ctx, limit) {
		if body != nil {
			return body
		}
		if timeout == 0 {
			return noUpdates()
		}
		select {
		case <-caller.Done():
		case <-timedOut:
			return noUpdates()
		case <-changed:
			time.Sleep(gatherTime)
		}
		changed = c.changed.next()
		switch {
		case errors.Is(context.Cause(caller), errSessionExpired):
			return waitFault(&types.NotAuthenticated{
				NoPermission: types.NoPermission{Object: &c.Self, PrivilegeId: "System.View"},
			})
		case caller.Err() != nil, c.newest.Load() != number:
			return waitFault(&types.RequestCanceled{})
		}
	}
}

// begin returns the response, or nil if the call must wait. A call does not wait if it has no version, if its version is the
// previous one or invalid, or if updates are available.
func (c *collector) begin(ctx *simulator.Context, version string, limit int) soap.HasFault {
	if version == "" {
		return c.reportAll(ctx, limit)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case version == strconv.Itoa(c.version):
		return c.next(ctx, limit)
	case version == strconv.Itoa(c.version-1) && c.last != nil:
		return &methods.WaitForUpdatesExBody{Res: &types.WaitForUpdatesExResponse{Returnval: c.last}}
	}
	return waitFault(&types.InvalidCollectorVersion{})
}

// reportAll returns all objects, even if they were reported before: the client may have lost the earlier response.
func (c *collector) reportAll(ctx *simulator.Context, limit int) soap.HasFault {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx.Map.AddHandler(c) // before reading, so that no change in between is missed
	c.reported = map[types.ManagedObjectReference]filterState{}
	c.pending = nil
	if fault := c.gather(ctx); fault != nil {
		return &methods.WaitForUpdatesExBody{Fault_: fault}
	}
	body := c.respond(limit)
	c.last = nil // a client that loses this response calls again without a version
	return body
}

// advance returns the next updates, or nil if there are none.
func (c *collector) advance(ctx *simulator.Context, limit int) soap.HasFault {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next(ctx, limit)
}

// next is advance for callers that hold the lock.
func (c *collector) next(ctx *simulator.Context, limit int) soap.HasFault {
	if len(c.pending) > 0 {
		return c.respond(limit)
	}
	if fault := c.gather(ctx); fault != nil {
		return &methods.WaitForUpdatesExBody{Fault_: fault}
	}
	if len(c.pending) == 0 {
		return nil
	}
	return c.respond(limit)
}

// gather appends the updates of all filters to the pending ones.
func (c *collector) gather(ctx *simulator.Context) *soap.Fault {
	refs := c.changed.take()
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
		state := c.reported[reference]
		switch {
		case state == nil:
			state = filterState{}
		case !state.isAffected(spec, refs):
			continue
		default:
			spec.ReportMissingObjectsInResults = types.NewBool(true) // a missing object has left; it is not an error
		}
		updates, fault := state.update(c.reader(ctx), spec, &c.changed, refs)
		if fault != nil {
			return fault
		}
		c.reported[reference] = state
		if len(updates) > 0 {
			c.pending = append(c.pending, types.PropertyFilterUpdate{Filter: reference, ObjectSet: updates})
		}
	}
	return nil
}

// respond returns up to limit pending updates as a new version.
func (c *collector) respond(limit int) soap.HasFault {
	c.version++
	c.last = &types.UpdateSet{Version: strconv.Itoa(c.version)}
	for len(c.pending) > 0 && limit > 0 {
		update := &c.pending[0]
		count := min(limit, len(update.ObjectSet))
		c.last.FilterSet = append(c.last.FilterSet, types.PropertyFilterUpdate{
			Filter: update.Filter, ObjectSet: update.ObjectSet[:count],
		})
		update.ObjectSet = update.ObjectSet[count:]
		limit -= count
		if len(update.ObjectSet) == 0 {
			c.pending = c.pending[1:]
		}
	}
	if len(c.pending) > 0 {
		c.last.Truncated = types.NewBool(true)
	}
	return &methods.WaitForUpdatesExBody{Res: &types.WaitForUpdatesExResponse{Returnval: c.last}}
}

func (c *collector) CancelWaitForUpdates(*types.CancelWaitForUpdates) soap.HasFault {
	c.supersede()
	return &methods.CancelWaitForUpdatesBody{Res: &types.CancelWaitForUpdatesResponse{}}
}

func (c *collector) CreateFilter(ctx *simulator.Context, request *types.CreateFilter) soap.HasFault {
	c.mu.Lock()
	defer c.mu.Unlock()
	body := c.PropertyCollector.CreateFilter(ctx, request)
	if body.Fault() == nil {
		// The simulator's filter also listens for changes, for the simulator's own WaitForUpdatesEx, and its lock can deadlock
		// with the lock of an object that is being changed. Here the filter is only used for its spec.
		reference := body.(*methods.CreateFilterBody).Res.Returnval
		ctx.Map.RemoveHandler(ctx.Session.Get(reference).(*simulator.PropertyFilter))
		c.filters = append(c.filters, reference)
		c.changed.wake() // the new filter has updates
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
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.PropertyCollector.DestroyPropertyCollector(ctx, request)
}

// supersede ends the waiting call, and returns the number of the new call, which is valid until the next supersede.
func (c *collector) supersede() int64 {
	number := c.newest.Add(1)
	c.changed.wake()
	return number
}

func noUpdates() soap.HasFault {
	return &methods.WaitForUpdatesExBody{Res: &types.WaitForUpdatesExResponse{}}
}

func waitFault(fault types.BaseMethodFault) soap.HasFault {
	return &methods.WaitForUpdatesExBody{Fault_: simulator.Fault("", fault)}
}
