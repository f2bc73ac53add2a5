package main

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// collector is the simulator's PropertyCollector with what vCenter does when a connection breaks. There a client asks
// again with the version it has and is given what it missed. The simulator knows no versions, and a call whose client
// is gone waits on, takes the next updates and gives them to nobody.
//
// Sessions get theirs by reflection, as a zero value: hence no constructor arguments.
type collector struct {
	simulator.PropertyCollector

	newest atomic.Int64 // the call that may wait; an older one ends
	turn   sync.Mutex   // of whoever works with the embedded collector, which has no lock of its own
	// What follows is under turn.
	version int
	last    *types.UpdateSet // what led to version, for the client that did not get it
}

func newCollector(self types.ManagedObjectReference) *collector {
	c := &collector{}
	c.Self = self
	return c
}

func (c *collector) WaitForUpdatesEx(ctx *simulator.Context, request *types.WaitForUpdatesEx) soap.HasFault {
	me := c.newest.Add(1)
	caller := callerOf(ctx, c.Self)
	var limit time.Time
	once := false
	options := types.WaitOptions{MaxWaitSeconds: new(int32)}
	if request.Options != nil {
		options.MaxObjectUpdates = request.Options.MaxObjectUpdates
		if seconds := request.Options.MaxWaitSeconds; seconds != nil {
			once = *seconds == 0
			limit = time.Now().Add(time.Duration(*seconds) * time.Second)
		}
	}

	body := c.begin(ctx, request, options)
	for body == nil {
		switch {
		case errors.Is(context.Cause(caller), errSessionExpired):
			return waitFault(&types.NotAuthenticated{
				NoPermission: types.NoPermission{Object: &c.Self, PrivilegeId: "System.View"},
			})
		case caller.Err() != nil, c.newest.Load() != me:
			return waitFault(&types.RequestCanceled{})
		}
		body = c.advance(ctx, request.This, "-", options) // waits 20 ms for updates
		if body == nil && (once || !limit.IsZero() && time.Now().After(limit)) {
			return &methods.WaitForUpdatesExBody{Res: &types.WaitForUpdatesExResponse{}}
		}
	}
	return body
}

// begin answers at once what needs no waiting: the first call, one that asks again, and one with a wrong version.
func (c *collector) begin(
	ctx *simulator.Context, request *types.WaitForUpdatesEx, options types.WaitOptions,
) soap.HasFault {
	if request.Version == "" {
		return c.advance(ctx, request.This, "", options)
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	switch request.Version {
	case strconv.Itoa(c.version):
		return nil
	case strconv.Itoa(c.version - 1):
		if c.last != nil {
			return &methods.WaitForUpdatesExBody{Res: &types.WaitForUpdatesExResponse{Returnval: c.last}}
		}
	}
	return waitFault(&types.InvalidCollectorVersion{})
}

// advance asks the simulator once. Nil means that there is nothing new.
func (c *collector) advance(
	ctx *simulator.Context, this types.ManagedObjectReference, version string, options types.WaitOptions,
) soap.HasFault {
	c.turn.Lock()
	defer c.turn.Unlock()
	body := c.PropertyCollector.WaitForUpdatesEx(ctx, &types.WaitForUpdatesEx{
		This: this, Version: version, Options: &options,
	})
	if body.Fault() != nil {
		return body
	}
	updates := body.(*methods.WaitForUpdatesExBody).Res.Returnval
	if updates == nil {
		return nil
	}
	c.version++
	updates.Version = strconv.Itoa(c.version)
	c.last = updates
	return body
}

func (c *collector) CancelWaitForUpdates(*types.CancelWaitForUpdates) soap.HasFault {
	c.newest.Add(1)
	return &methods.CancelWaitForUpdatesBody{Res: &types.CancelWaitForUpdatesResponse{}}
}

func (c *collector) CreateFilter(ctx *simulator.Context, request *types.CreateFilter) soap.HasFault {
	c.turn.Lock()
	defer c.turn.Unlock()
	body := c.PropertyCollector.CreateFilter(ctx, request)
	if body.Fault() == nil {
		// Told that its view has changed, a filter forgets what it has told and, with its own lock held, goes through the
		// objects; who creates one of these holds that one's lock, and tells the filter: neither goes on. What has entered
		// the view is found without it.
		filter := ctx.Session.Get(body.(*methods.CreateFilterBody).Res.Returnval)
		ctx.Map.RemoveHandler(filter.(*simulator.PropertyFilter))
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
	c.newest.Add(1)
	c.turn.Lock()
	defer c.turn.Unlock()
	return c.PropertyCollector.DestroyPropertyCollector(ctx, request)
}

func waitFault(fault types.BaseMethodFault) soap.HasFault {
	return &methods.WaitForUpdatesExBody{Fault_: simulator.Fault("", fault)}
}
