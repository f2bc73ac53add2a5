package main

import (
	"sync"
	"time"
)

// delays says how long things of a name wait. A change reaches those who wait already: a test sets an hour, sees
// what it wants to see, and clears it.
type delays struct {
	mu      sync.Mutex
	byName  map[string]time.Duration
	changed chan struct{} // closed by the next change
}

func newDelays() *delays {
	return &delays{changed: make(chan struct{})}
}

func (d *delays) set(byName map[string]time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.byName = byName
	close(d.changed)
	d.changed = make(chan struct{})
}

func (d *delays) has(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.byName[name] > 0
}

func (d *delays) wait(name string) {
	start := time.Now()
	for {
		d.mu.Lock()
		left := d.byName[name] - time.Since(start)
		changed := d.changed
		d.mu.Unlock()
		if left <= 0 {
			return
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-changed:
		}
		timer.Stop()
	}
}
