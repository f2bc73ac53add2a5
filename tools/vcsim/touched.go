package main

import (
	"sync"

	"github.com/vmware/govmomi/vim25/types"
)

// touched keeps which objects have changed since a collector has looked at them. How they have changed is seen by
// looking: the simulator tells a change property by property, and of some it tells nothing.
type touched struct {
	mu   sync.Mutex
	refs map[types.ManagedObjectReference]struct{}
	// removed are told here right before they leave the registry: who looks at that moment still finds them.
	removed map[types.ManagedObjectReference]struct{}
	// woken is closed by the next change; none where nobody waits for one.
	woken chan struct{}
}

// next is closed by the next change, or by wake. Who takes it before he looks misses none.
func (t *touched) next() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.woken == nil {
		t.woken = make(chan struct{})
	}
	return t.woken
}

// wake lets those who wait look at what they wait for.
func (t *touched) wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tell()
}

func (t *touched) tell() {
	if t.woken != nil {
		close(t.woken)
		t.woken = nil
	}
}

func (t *touched) add(ref types.ManagedObjectReference) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mark(ref)
	delete(t.removed, ref)
}

func (t *touched) remove(ref types.ManagedObjectReference) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mark(ref)
	if t.removed == nil {
		t.removed = map[types.ManagedObjectReference]struct{}{}
	}
	t.removed[ref] = struct{}{}
}

func (t *touched) mark(ref types.ManagedObjectReference) {
	if t.refs == nil {
		t.refs = map[types.ManagedObjectReference]struct{}{}
	}
	t.refs[ref] = struct{}{}
	t.tell()
}

// take gives what has changed since the last time. A change that comes while one looks is there the next time.
func (t *touched) take() map[types.ManagedObjectReference]struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	refs := t.refs
	t.refs = nil
	return refs
}

func (t *touched) isRemoved(ref types.ManagedObjectReference) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, removed := t.removed[ref]
	return removed
}
