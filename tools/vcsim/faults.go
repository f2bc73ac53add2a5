package main

import (
	"bytes"
	"fmt"
	"html"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strings"
	"sync"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/types"
	"github.com/vmware/govmomi/vim25/xml"
)

// faultRule injects a fault. The simulator has such rules too, but counts calls without a lock, so that Skip and Max would not be
// exact for concurrent calls.
type faultRule struct {
	// Method fails the call itself; Task fails the task that a call has started. Exactly one is set.
	Method string `json:"method,omitempty"`
	Task   string `json:"task,omitempty"`
	// ObjectType and ObjectName limit the rule to matching objects; empty matches any.
	ObjectType string `json:"objectType,omitempty"`
	ObjectName string `json:"objectName,omitempty"`
	// Fault is the name of a vim25 fault type.
	Fault   string `json:"fault"`
	Message string `json:"message,omitempty"`
	// Skip is the number of matching calls that succeed before the first fault.
	Skip int `json:"skip"`
	// Max is the maximum number of injected faults; 0 means no limit.
	Max int `json:"max"`
	// Probability that a matching call gets the fault; the default is 1.
	Probability *float64 `json:"probability,omitempty"`
}

// ruleState is a rule with its counters.
type ruleState struct {
	faultRule
	// Seen counts the calls that matched, Injected those that got the fault.
	Seen     int `json:"seen"`
	Injected int `json:"injected"`

	kind reflect.Type
}

// injection is a fault to return to a client.
type injection struct {
	fault   types.BaseMethodFault
	message string
}

type faults struct {
	inventory *inventory

	mu    sync.Mutex
	rules []*ruleState
}

func (f *faults) add(rule faultRule) error {
	kind, err := faultType(rule.Fault)
	if err != nil {
		return err
	}
	switch {
	case (rule.Method == "") == (rule.Task == ""):
		return fmt.Errorf("either a method, such as CloneVM_Task, or a task, such as CloneVm, is required")
	case rule.Method != "" && !isMethod(rule.Method):
		return fmt.Errorf("unknown vim25 method %q; use a name such as CloneVM_Task", rule.Method)
	case rule.Skip < 0 || rule.Max < 0:
		return fmt.Errorf("skip and max must not be negative")
	case rule.Probability != nil && (*rule.Probability <= 0 || *rule.Probability > 1):
		return fmt.Errorf("probability must be more than 0 and at most 1, not %v", *rule.Probability)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, &ruleState{faultRule: rule, kind: kind})
	return nil
}

func (f *faults) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

func (f *faults) states() []ruleState {
	f.mu.Lock()
	defer f.mu.Unlock()
	states := make([]ruleState, 0, len(f.rules))
	for _, rule := range f.rules {
		states = append(states, *rule)
	}
	return states
}

// onCall returns the fault for a call, or nil.
func (f *faults) onCall(call call) *injection {
	return f.inject(f.inventory.context(), call.object, func(rule faultRule) bool {
		return rule.Method == call.method
	})
}

// onTask returns the fault for a task, or nil. ctx must be the task's context, which holds the lock of the object.
func (f *faults) onTask(ctx *simulator.Context, name string, object types.ManagedObjectReference) *injection {
	return f.inject(ctx, object, func(rule faultRule) bool {
		return rule.Task != "" && taskName(rule.Task) == name
	})
}

// inject counts the call and returns the fault of the first rule that applies, or nil.
func (f *faults) inject(
	ctx *simulator.Context, object types.ManagedObjectReference, matches func(faultRule) bool,
) *injection {
	name := f.nameFor(ctx, object, matches)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, rule := range f.rules {
		if !matches(rule.faultRule) ||
			rule.ObjectType != "" && rule.ObjectType != object.Type ||
			rule.ObjectName != "" && rule.ObjectName != name {
			continue
		}
		rule.Seen++
		if rule.Seen <= rule.Skip || rule.Max > 0 && rule.Injected >= rule.Max {
			continue
		}
		if rule.Probability != nil && rand.Float64() >= *rule.Probability {
			continue
		}
		rule.Injected++
		return rule.injection()
	}
	return nil
}

// nameFor returns the object's name if a rule needs it, because reading the name waits for the object's lock. It does not hold
// f.mu while it waits: a task locks f.mu while it holds the lock of its object, so this would be a deadlock.
func (f *faults) nameFor(
	ctx *simulator.Context, object types.ManagedObjectReference, matches func(faultRule) bool,
) string {
	f.mu.Lock()
	needed := false
	for _, rule := range f.rules {
		needed = needed || rule.ObjectName != "" && matches(rule.faultRule)
	}
	f.mu.Unlock()
	if !needed {
		return ""
	}
	return nameOf(ctx, object)
}

func (r *ruleState) injection() *injection {
	message := r.Message
	if message == "" {
		message = "Injected fault: " + r.Fault
	}
	fault := reflect.New(r.kind).Interface().(types.BaseMethodFault)
	return &injection{fault: fault, message: message}
}

// write sends the fault in the same format as the simulator.
func (i *injection) write(w http.ResponseWriter) {
	kind := reflect.TypeOf(i.fault).Elem().Name()
	var detail bytes.Buffer
	err := xml.NewEncoder(&detail).EncodeElement(i.fault, xml.StartElement{
		Name: xml.Name{Local: kind + "Fault"},
		Attr: []xml.Attr{
			{Name: xml.Name{Local: "xmlns"}, Value: "urn:" + vim25.Namespace},
			{Name: xml.Name{Local: "xsi:type"}, Value: kind},
		},
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/xml; charset=utf-8")
	w.WriteHeader(http.StatusInternalServerError)
	fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?>
<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Body><soapenv:Fault><faultcode>ServerFaultCode</faultcode><faultstring>%s</faultstring><detail>%s</detail></soapenv:Fault></soapenv:Body></soapenv:Envelope>`,
		html.EscapeString(i.message), detail.String())
}

func faultType(name string) (reflect.Type, error) {
	typeOf := types.TypeFunc()
	kind, ok := typeOf(name)
	if !ok || !isFault(kind) {
		return nil, fmt.Errorf("unknown vim25 fault %q; use a name such as NoPermission or InvalidState", name)
	}
	// The Go bindings have each fault twice, also under the name of its XML element, with the suffix Fault.
	if plain, wrapped := strings.CutSuffix(name, "Fault"); wrapped {
		if inner, ok := typeOf(plain); ok && isFault(inner) {
			return nil, fmt.Errorf("unknown vim25 fault %q; use %s", name, plain)
		}
	}
	return kind, nil
}

func isFault(kind reflect.Type) bool {
	return reflect.PointerTo(kind).Implements(reflect.TypeFor[types.BaseMethodFault]())
}

func isMethod(name string) bool {
	kind, ok := types.TypeFunc()(name)
	if !ok || kind.Kind() != reflect.Struct {
		return false
	}
	_, ok = kind.FieldByName("This")
	return ok
}
