package main

import (
	"sync"
	"time"
)

// delays has a delay per name. A change also applies to waits in progress, so a test can set an hour, observe the waiting call,
// and clear the delay.
type delays struct {
	mu      sync.Mutex
	byName  map[string]time.Duration
	changed chan struct{} // closed on the next change
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
