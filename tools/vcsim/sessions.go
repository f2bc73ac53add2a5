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

	// Logins read the timeout without a lock, so it changes only while there are none.
	logins sync.RWMutex

	mu sync.Mutex
	// As their calls showed them.
	known map[string]*simulator.Session
	// Expired by hand. The simulator writes a session back with every call: one that is under way brings an ended
	// session to life again, so that to have ended it is not enough.
	expired map[string]struct{}
}

func newSessions(service *simulator.Service, waits *waits) *sessions {
	return &sessions{
		service: service, waits: waits,
		known: map[string]*simulator.Session{}, expired: map[string]struct{}{},
	}
}

// see is shown every call. The simulator has no other way to tell what a session holds.
func (s *sessions) see(ctx *simulator.Context, method *simulator.Method) {
	if ctx.Session == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// What waits in a session ends with it.
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

// setTimeout holds for sessions that begin from now on. The simulator looks at a session once every timeout, so an
// idle one ends after one to two timeouts.
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

// expire ends all sessions, with calls for updates that are under way, and says how many there were.
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

// prune clears up after sessions that were idle for too long; of those the simulator forgets no more than the name.
func (s *sessions) prune() {
	s.mu.Lock()
	gone := maps.Clone(s.known)
	s.mu.Unlock()
	for _, user := range s.users() {
		delete(gone, user.Key)
	}
	for key := range gone {
		s.clear(key)
	}
}

// clear ends a session with its views and filters, which otherwise would be told of every change for ever.
func (s *sessions) clear(key string) {
	s.mu.Lock()
	session := s.known[key]
	delete(s.known, key)
	s.mu.Unlock()
	s.waits.expire(key)
	ctx := *s.service.Context
	if session == nil { // it has logged in and not called again
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
	// The simulator lists the sessions to whoever has one.
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
