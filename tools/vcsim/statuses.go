package main

import "sync"

// statuses makes the next requests fail with an HTTP status, as a proxy in front of a restarting vCenter does.
type statuses struct {
	mu        sync.Mutex
	code      int
	remaining int
}

func (s *statuses) set(code, count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.code, s.remaining = code, count
}

// take returns the status for this request; ok is false if the simulator is to handle the request.
func (s *statuses) take() (code int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.remaining == 0 {
		return 0, false
	}
	s.remaining--
	return s.code, true
}
