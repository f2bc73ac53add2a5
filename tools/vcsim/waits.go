package main

import (
	"context"
	"errors"
	"sync"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

var errSessionExpired = errors.New("the session has expired")

// wait is a client's call for updates that is not answered yet.
type wait struct {
	session   string
	collector types.ManagedObjectReference
}

// waits lets a collector know whether somebody still wants its answer; the simulator does not tell its objects from
// which request they are called. It is kept in the simulator's registry, the one place a collector can reach.
type waits struct {
	// The simulator looks into whatever is in its registry, and panics over what is none of its objects (FindByUuid does).
	mo.ManagedEntity

	mu   sync.Mutex
	open map[wait]*caller
}

type caller struct {
	context.Context
	end context.CancelCauseFunc
}

var waitsReference = types.ManagedObjectReference{Type: "VmwrightWaits", Value: "VmwrightWaits"}

func newWaits() *waits {
	return &waits{open: map[wait]*caller{}}
}

func (w *waits) Reference() types.ManagedObjectReference { return waitsReference }

// begin notes a call for as long as its request lasts.
func (w *waits) begin(request context.Context, wait wait) (end func()) {
	ctx, cancel := context.WithCancelCause(request)
	mine := &caller{Context: ctx, end: cancel}
	w.mu.Lock()
	w.open[wait] = mine
	w.mu.Unlock()
	return func() {
		cancel(nil)
		w.mu.Lock()
		if w.open[wait] == mine { // not the next call's, which may have come before this one's end
			delete(w.open, wait)
		}
		w.mu.Unlock()
	}
}

// expire ends the calls of a session.
func (w *waits) expire(session string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for wait, caller := range w.open {
		if wait.session == session {
			caller.end(errSessionExpired)
		}
	}
}

func callerOf(ctx *simulator.Context, collector types.ManagedObjectReference) context.Context {
	waits := ctx.Map.Get(waitsReference).(*waits)
	waits.mu.Lock()
	defer waits.mu.Unlock()
	caller, ok := waits.open[wait{session: ctx.Session.Key, collector: collector}]
	if !ok {
		return context.Background()
	}
	return caller
}
