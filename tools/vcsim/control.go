package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const maxControlBody = 1 << 20

// notFoundError is an error for which the control port responds with status 404. The status of other errors is 400.
type notFoundError struct{ error }

func notFound(format string, arguments ...any) error {
	return notFoundError{fmt.Errorf(format, arguments...)}
}

// newControl returns the handler of the control port. Each route returns a value to encode as JSON; errors are encoded as
// {"error": "message"}.
func newControl(v *vcenter) http.Handler {
	mux := http.NewServeMux()
	route := func(pattern string, handle func(*http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, maxControlBody)
			result, err := handle(r)
			respond(w, result, err)
		})
	}

	route("POST /faults", func(r *http.Request) (any, error) {
		rule, err := read[faultRule](r)
		if err != nil {
			return nil, err
		}
		return nil, v.faults.add(rule)
	})
	route("GET /faults", func(*http.Request) (any, error) { return v.faults.states(), nil })
	route("DELETE /faults", func(*http.Request) (any, error) {
		v.faults.clear()
		return nil, nil
	})

	route("PUT /status", func(r *http.Request) (any, error) { return nil, v.setStatus(r) })
	route("DELETE /status", func(*http.Request) (any, error) {
		v.statuses.set(0, 0)
		return nil, nil
	})
	route("POST /drop", func(*http.Request) (any, error) {
		return map[string]int{"dropped": v.connections.drop()}, nil
	})

	route("PUT /delays", func(r *http.Request) (any, error) { return nil, v.setDelays(r) })
	route("DELETE /delays", func(*http.Request) (any, error) {
		v.methods.set(nil)
		v.tasks.delays.set(nil)
		return nil, nil
	})

	route("GET /sessions", func(*http.Request) (any, error) { return v.sessions.list(), nil })
	route("DELETE /sessions", func(*http.Request) (any, error) {
		return map[string]int{"expired": v.sessions.expire()}, nil
	})
	route("PUT /session-timeout", func(r *http.Request) (any, error) { return nil, v.setSessionTimeout(r) })

	route("GET /calls", func(*http.Request) (any, error) { return v.calls.counts(), nil })
	route("DELETE /calls", func(*http.Request) (any, error) {
		v.calls.reset()
		return nil, nil
	})

	route("PATCH /hosts/{name}", changing(v.inventory.setHost))
	route("PATCH /vms/{name}", changing(v.inventory.setVM))
	route("PUT /scheduled-tasks/{name}", changing(v.scheduled.put))
	route("DELETE /scheduled-tasks/{name}", func(r *http.Request) (any, error) {
		return nil, v.scheduled.remove(r.PathValue("name"))
	})

	route("/", func(r *http.Request) (any, error) {
		return nil, notFound("unknown endpoint %s %s", r.Method, r.URL.Path)
	})
	return mux
}

func (v *vcenter) setStatus(r *http.Request) error {
	wanted, err := read[struct {
		Code  int `json:"code"`
		Count int `json:"count"`
	}](r)
	switch {
	case err != nil:
		return err
	case wanted.Code < 300 || wanted.Code > 599:
		return fmt.Errorf("code must be an HTTP status from 300 to 599, not %d", wanted.Code)
	case wanted.Count < 1:
		return fmt.Errorf("count, the number of requests to fail, must be at least 1, not %d", wanted.Count)
	}
	v.statuses.set(wanted.Code, wanted.Count)
	return nil
}

// setDelays sets the delays of methods, tasks or both, in milliseconds. Delays that the request leaves out are not changed.
func (v *vcenter) setDelays(r *http.Request) error {
	wanted, err := read[struct {
		Methods map[string]int `json:"methods"`
		Tasks   map[string]int `json:"tasks"`
	}](r)
	if err != nil {
		return err
	}
	methods, tasks := map[string]time.Duration{}, map[string]time.Duration{}
	for name, ms := range wanted.Methods {
		if !isMethod(name) {
			return fmt.Errorf("unknown vim25 method %q; use a name such as CloneVM_Task", name)
		}
		if methods[name], err = milliseconds(name, ms); err != nil {
			return err
		}
	}
	for name, ms := range wanted.Tasks {
		if tasks[taskName(name)], err = milliseconds(name, ms); err != nil {
			return err
		}
	}
	if wanted.Methods == nil && wanted.Tasks == nil {
		return errors.New("methods or tasks is required, each an object that maps names to milliseconds")
	}
	if wanted.Methods != nil {
		v.methods.set(methods)
	}
	if wanted.Tasks != nil {
		v.tasks.delays.set(tasks)
	}
	return nil
}

func (v *vcenter) setSessionTimeout(r *http.Request) error {
	wanted, err := read[struct {
		Ms int `json:"ms"`
	}](r)
	if err != nil {
		return err
	}
	timeout, err := milliseconds("ms", wanted.Ms)
	if err != nil || timeout == 0 {
		return fmt.Errorf("ms, the timeout in milliseconds, must be between 1 and 86400000 (a day), not %d", wanted.Ms)
	}
	v.sessions.setTimeout(timeout)
	return nil
}

func milliseconds(name string, ms int) (time.Duration, error) {
	if ms < 0 || ms > int(24*time.Hour/time.Millisecond) {
		return 0, fmt.Errorf("%s must be between 0 and 86400000 milliseconds (a day), not %d", name, ms)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// changing returns the handler of a request that changes the object with the name in its path.
func changing[T interface{ check() error }](change func(name string, state T) error) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		state, err := readChecked[T](r)
		if err != nil {
			return nil, err
		}
		return nil, change(r.PathValue("name"), state)
	}
}

func readChecked[T interface{ check() error }](r *http.Request) (T, error) {
	value, err := read[T](r)
	if err == nil {
		err = value.check()
	}
	return value, err
}

// read decodes the body as one JSON value. Unknown fields are an error, because a misspelt field would have no effect.
func read[T any](r *http.Request) (T, error) {
	var value T
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&value)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field == "":
		return value, fmt.Errorf("the body must be a JSON object, not %s", wrong.Value)
	case errors.As(err, &wrong):
		return value, fmt.Errorf("%s must be of type %s, not %s", wrong.Field, wrong.Type, wrong.Value)
	case errors.Is(err, io.EOF):
		return value, errors.New("the request has no body; a JSON object is expected")
	case err != nil:
		return value, fmt.Errorf("invalid body: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if decoder.More() {
		return value, errors.New("invalid body: it contains more than one JSON value")
	}
	return value, nil
}

func respond(w http.ResponseWriter, result any, err error) {
	status := http.StatusOK
	if err != nil {
		status = http.StatusBadRequest
		if errors.As(err, &notFoundError{}) {
			status = http.StatusNotFound
		}
		result = map[string]string{"error": err.Error()}
	}
	if result == nil {
		result = struct{}{}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(result)
}
