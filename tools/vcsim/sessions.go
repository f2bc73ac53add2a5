package main

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

const timeoutOption = "config.vmacore.soap.sessionTimeout"

type session struct {
	User       string    `json:"user"`
	Agent      string    `json:"agent"`
	Calls      int64     `json:"calls"`
	LoggedIn   time.Time `json:"loggedIn"`
	LastActive time.Time `json:"lastActive"`
}

type sessions struct {
	service *simulator.Service
	waits   *waits

	// The simulator reads the timeout during logins without a lock, so setTimeout excludes logins.
	logins sync.RWMutex

	mu sync.Mutex
	// Sessions by key, recorded from their calls.
	known map[string]*simulator.Session
	// Keys of sessions ended by expire. Terminating them is not enough: the simulator stores a session after every call, so a
	// call in flight would restore it.
	expired map[string]struct{}
}

func newSessions(service *simulator.Service, waits *waits) *sessions {
	return &sessions{
		service: service, waits: waits,
		known: map[string]*simulator.Session{}, expired: map[string]struct{}{},
	}
}

// observe records the session of a call. The simulator offers no other access to the content of sessions.
func (s *sessions) observe(ctx *simulator.Context, method *simulator.Method) {
	if ctx.Session == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// Pending waits end with their session.
	switch request := method.Body.(type) {
	case *types.Logout:
		delete(s.known, ctx.Session.Key)
		s.waits.expire(ctx.Session.Key)
		return
	case *types.TerminateSession:
		for _, key := range request.SessionId {
			s.waits.expire(key)
		}
	}
	s.known[ctx.Session.Key] = ctx.Session
}

// serve calls next. For logins it removes expired sessions first and excludes setTimeout.
func (s *sessions) serve(method string, next func()) {
	if slices.Contains([]string{
		"Login", "LoginByToken", "LoginExtensionByCertificate", "CloneSession", "ImpersonateUser",
	}, method) {
		s.prune()
		s.logins.RLock()
		defer s.logins.RUnlock()
	}
	next()
}

// setTimeout sets the idle timeout of sessions that begin from now on. The simulator checks a session once per timeout, so an idle
// session ends after one to two timeouts.
func (s *sessions) setTimeout(timeout time.Duration) {
	s.logins.Lock()
	defer s.logins.Unlock()
	ctx := *s.service.Context
	options := ctx.Map.OptionManager()
	ctx.WithLock(options, func() {
		options.UpdateOptions(&types.UpdateOptions{ChangedValue: []types.BaseOptionValue{
			&types.OptionValue{Key: timeoutOption, Value: timeout.String()},
		}})
	})
}

func (s *sessions) list() []session {
	list := []session{}
	for _, each := range s.users() {
		list = append(list, session{
			User:       each.UserName,
			Agent:      each.UserAgent,
			Calls:      each.CallCount,
			LoggedIn:   each.LoginTime,
			LastActive: each.LastActiveTime,
		})
	}
	return list
}

// expire ends all sessions and their pending waits, and returns the number of sessions.
func (s *sessions) expire() int {
	users := s.users()
	for _, user := range users {
		s.mu.Lock()
		s.expired[user.Key] = struct{}{}
		s.mu.Unlock()
		s.clear(user.Key)
	}
	return len(users)
}

// prune cleans up after sessions that timed out; the simulator itself removes only their keys.
func (s *sessions) prune() {
	s.mu.Lock()
	expired := maps.Clone(s.known)
	s.mu.Unlock()
	for _, user := range s.users() {
		delete(expired, user.Key)
	}
	for key := range expired {
		s.clear(key)
	}
}

// clear ends a session and removes its views and filters, which otherwise would be notified of changes forever.
func (s *sessions) clear(key string) {
	s.mu.Lock()
	session := s.known[key]
	delete(s.known, key)
	s.mu.Unlock()
	s.waits.expire(key)
	ctx := *s.service.Context
	if session == nil { // no call since the login
		ctx.Session = &simulator.Session{}
		ctx.Map.SessionManager().TerminateSession(&ctx, &types.TerminateSession{SessionId: []string{key}})
		return
	}
	ctx.Session = session
	ctx.Map.SessionManager().Logout(&ctx, &types.Logout{})
}

func (s *sessions) hasExpired(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, expired := s.expired[key]
	return expired
}

func (s *sessions) users() []types.UserSession {
	registry := s.service.Context.Map
	// The simulator lists sessions only to a caller with a session.
	reader := &simulator.Session{Registry: simulator.NewRegistry(), Map: registry}
	manager := reader.Get(registry.SessionManager().Self).(*simulator.SessionManager)
	users := slices.DeleteFunc(manager.SessionList, func(user types.UserSession) bool {
		return s.hasExpired(user.Key)
	})
	slices.SortFunc(users, func(a, b types.UserSession) int {
		if order := a.LoginTime.Compare(b.LoginTime); order != 0 {
			return order
		}
		return strings.Compare(a.Key, b.Key)
	})
	return users
}
