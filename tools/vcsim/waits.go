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

// wait identifies a pending WaitForUpdatesEx call.
type wait struct {
	session   string
	collector types.ManagedObjectReference
}

// waits lets a collector find out whether the client of a call is still connected, because the simulator does not pass the HTTP
// request to its objects. It is stored in the simulator's registry, the only place that a collector can access.
type waits struct {
	// Embedded, because FindByUuid panics on objects in the registry that are not managed entities.
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

// begin records a call until end is called.
func (w *waits) begin(request context.Context, wait wait) (end func()) {
	ctx, cancel := context.WithCancelCause(request)
	current := &caller{Context: ctx, end: cancel}
	w.mu.Lock()
	w.open[wait] = current
	w.mu.Unlock()
	return func() {
		cancel(nil)
		w.mu.Lock()
		if w.open[wait] == current { // the next call may have begun before this one ended
			delete(w.open, wait)
		}
		w.mu.Unlock()
	}
}

// expire ends the pending calls of a session.
func (w *waits) expire(session string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for wait, caller := range w.open {
		if wait.session == session {
			caller.end(errSessionExpired)
		}
	}
}

// callerOf returns a context that is cancelled when the client of the pending call disconnects or its session expires.
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
