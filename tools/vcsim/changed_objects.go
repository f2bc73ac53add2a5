package main

import (
	"sync"

	"github.com/vmware/govmomi/vim25/types"
)

// changedObjects records which objects have changed since a collector last read them. It does not record which properties have
// changed, because the simulator's notifications do not name all of them.
type changedObjects struct {
	mu   sync.Mutex
	refs map[types.ManagedObjectReference]struct{}
	// removed has the removed objects. The simulator notifies before it removes an object from the registry, so a read may still
	// find the object.
	removed map[types.ManagedObjectReference]struct{}
	// notified is closed on the next change; nil if nothing waits for it.
	notified chan struct{}
}

// next returns a channel that is closed on the next change or by wake. To miss no change, callers must call
// next before they read.
func (o *changedObjects) next() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.notified == nil {
		o.notified = make(chan struct{})
	}
	return o.notified
}

// wake makes waiting calls check their conditions.
func (o *changedObjects) wake() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.notify()
}

func (o *changedObjects) notify() {
	if o.notified != nil {
		close(o.notified)
		o.notified = nil
	}
}

func (o *changedObjects) add(ref types.ManagedObjectReference) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mark(ref)
	delete(o.removed, ref)
}

func (o *changedObjects) remove(ref types.ManagedObjectReference) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mark(ref)
	if o.removed == nil {
		o.removed = map[types.ManagedObjectReference]struct{}{}
	}
	o.removed[ref] = struct{}{}
}

func (o *changedObjects) mark(ref types.ManagedObjectReference) {
	if o.refs == nil {
		o.refs = map[types.ManagedObjectReference]struct{}{}
	}
	o.refs[ref] = struct{}{}
	o.notify()
}

// take returns the objects that changed since the last call. A change during the following read is returned by the next call.
func (o *changedObjects) take() map[types.ManagedObjectReference]struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	refs := o.refs
	o.refs = nil
	return refs
}

func (o *changedObjects) isRemoved(ref types.ManagedObjectReference) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, removed := o.removed[ref]
	return removed
}
