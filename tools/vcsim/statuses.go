package main

import "sync"

// statuses answers the next requests with an HTTP status, as a proxy before a vCenter that restarts does.
type statuses struct {
	mu   sync.Mutex
	code int
	left int
}

func (s *statuses) set(code, count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.code, s.left = code, count
}

// take gives the status for this request; there is none when the simulator shall answer.
func (s *statuses) take() (code int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 {
		return 0, false
	}
	s.left--
	return s.code, true
}
