package main

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"strings"

	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/soap"
)

// front is the HTTP handler in front of the simulator. It decides about faults in the order in which calls arrive, before any
// delay, so that delays do not affect which call gets a fault.
type front struct {
	vcenter *vcenter
	waits   *waits
	next    http.Handler
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	isCall := r.URL.Path == vim25.Path || strings.HasPrefix(r.URL.Path, vim25.Path+"/")
	if !isCall || r.Method != http.MethodPost {
		f.next.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client disconnected while sending the request
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	call := readCall(body)
	f.vcenter.calls.add(cmp.Or(call.method, "unreadable"))

	status, rejected := f.vcenter.statuses.take()
	var injected *injection
	if !rejected {
		injected = f.vcenter.faults.onCall(call)
	}
	// The wait continues if the client disconnects: as in vCenter, the call is still executed, and only its response is lost.
	f.vcenter.methods.wait(call.method)

	switch {
	case rejected:
		http.Error(w, http.StatusText(status), status)
	case injected != nil:
		injected.write(w)
	default:
		f.pass(w, r, call)
	}
}

func (f *front) pass(w http.ResponseWriter, r *http.Request, call call) {
	session := ""
	if cookie, err := r.Cookie(soap.SessionCookieName); err == nil {
		session = cookie.Value
	}
	if f.vcenter.sessions.hasExpired(session) {
		r.Header.Del("Cookie")
	}
	if call.method == "WaitForUpdatesEx" {
		end := f.waits.begin(r.Context(), wait{session: session, collector: call.object})
		defer end()
	}
	f.vcenter.sessions.serve(call.method, func() { f.next.ServeHTTP(w, r) })
}
