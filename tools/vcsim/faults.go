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

// faultRule is one thing that shall go wrong. The simulator has rules of its own, but counts them without a lock: under
// load the n-th call would not be the n-th.
type faultRule struct {
	// Method or Task: a fault of the call itself, or one that ends the task which the call has started.
	Method string `json:"method,omitempty"`
	Task   string `json:"task,omitempty"`
	// ObjectType and ObjectName limit the rule to calls on such objects; empty means any.
	ObjectType string `json:"objectType,omitempty"`
	ObjectName string `json:"objectName,omitempty"`
	// Fault is the name of a vim25 type.
	Fault   string `json:"fault"`
	Message string `json:"message,omitempty"`
	// Skip lets that many matching calls pass first.
	Skip int `json:"skip"`
	// Max is how often the rule strikes; 0 is always.
	Max int `json:"max"`
	// Probability that it strikes a call; left out means 1.
	Probability *float64 `json:"probability,omitempty"`
}

// ruleState is a rule and what became of it.
type ruleState struct {
	faultRule
	// Seen counts the calls that matched, Injected those that were struck.
	Seen     int `json:"seen"`
	Injected int `json:"injected"`

	kind reflect.Type
}

// injection is a fault on its way to a client.
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
		return fmt.Errorf("a fault needs either a method, such as CloneVM_Task, or a task, such as CloneVm")
	case rule.Method != "" && !isMethod(rule.Method):
		return fmt.Errorf("vim25 has no method %q; names are written as in CloneVM_Task", rule.Method)
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

func (f *faults) onCall(call call) *injection {
	return f.strike(f.inventory.context(), call.object, func(rule faultRule) bool {
		return rule.Method == call.method
	})
}

// onTask wants the task's own context, which holds the lock of the object.
func (f *faults) onTask(ctx *simulator.Context, name string, object types.ManagedObjectReference) *injection {
	return f.strike(ctx, object, func(rule faultRule) bool {
		return rule.Task != "" && taskName(rule.Task) == name
	})
}

func (f *faults) strike(
	ctx *simulator.Context, object types.ManagedObjectReference, concerns func(faultRule) bool,
) *injection {
	name := f.nameFor(ctx, object, concerns)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, rule := range f.rules {
		if !concerns(rule.faultRule) ||
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

// nameFor asks for an object's name only when a rule wants it: to ask is to wait for the object's lock. And it asks
// outside the rules' own lock, which tasks take while they hold objects.
func (f *faults) nameFor(
	ctx *simulator.Context, object types.ManagedObjectReference, concerns func(faultRule) bool,
) string {
	f.mu.Lock()
	wanted := false
	for _, rule := range f.rules {
		wanted = wanted || rule.ObjectName != "" && concerns(rule.faultRule)
	}
	f.mu.Unlock()
	if !wanted {
		return ""
	}
	return nameOf(ctx, object)
}

func (r *ruleState) injection() *injection {
	message := r.Message
	if message == "" {
		message = "A fault for a test: " + r.Fault
	}
	fault := reflect.New(r.kind).Interface().(types.BaseMethodFault)
	return &injection{fault: fault, message: message}
}

// write answers as the simulator answers with a fault.
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
		return nil, fmt.Errorf("vim25 has no fault %q; names are written as in NoPermission or InvalidState", name)
	}
	// The Go bindings know each fault a second time, under the name of the element that carries it.
	if plain, wrapped := strings.CutSuffix(name, "Fault"); wrapped {
		if inner, ok := typeOf(plain); ok && isFault(inner) {
			return nil, fmt.Errorf("the fault %q is called %s", name, plain)
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
