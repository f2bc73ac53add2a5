package main

import (
	"fmt"
	"log"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// tasks makes tasks slow and lets them fail. The simulator has a delay of its own, but in a plain global map that
// running tasks read, and it keeps the lock of the object meanwhile: clones of one template would queue up. So this is
// told of every task before it begins, and puts itself in front of its work.
type tasks struct {
	faults *faults
	delays *delays

	mu     sync.Mutex
	fresh  map[types.ManagedObjectReference]*simulator.Task // created, not begun
	atWork map[*simulator.Context]struct{}                  // of a call, whose task is at work
	held   map[types.ManagedObjectReference]func()          // parts of another task, to be let go of at their end
}

func newTasks(faults *faults) *tasks {
	return &tasks{
		faults: faults, delays: newDelays(),
		fresh:  map[types.ManagedObjectReference]*simulator.Task{},
		atWork: map[*simulator.Context]struct{}{},
		held:   map[types.ManagedObjectReference]func(){},
	}
}

// taskName makes CloneVm, cloneVm and CloneVm_Task the same.
func taskName(name string) string {
	return strings.ToLower(strings.TrimSuffix(name, "_Task"))
}

func (t *tasks) Reference() types.ManagedObjectReference {
	return types.ManagedObjectReference{Type: "VmwrightTasks", Value: "VmwrightTasks"}
}

func (t *tasks) PutObject(_ *simulator.Context, object mo.Reference) {
	if task, ok := object.(*simulator.Task); ok {
		t.mu.Lock()
		t.fresh[task.Self] = task
		t.mu.Unlock()
	}
}

// UpdateObject sees a new task set to "running". That is the moment to step in: its goroutine is not started, and the
// context given here is the one under which the task holds its locks.
func (t *tasks) UpdateObject(ctx *simulator.Context, object mo.Reference, changes []types.PropertyChange) {
	reference := object.Reference()
	if reference.Type != "Task" {
		return
	}
	if isEnd(changes) {
		t.letGo(reference)
	}
	t.mu.Lock()
	task := t.fresh[reference]
	delete(t.fresh, reference)
	_, isInner := t.atWork[ctx]
	t.mu.Unlock()
	if task == nil || task.Execute == nil {
		return
	}
	if isInner {
		unlist(ctx, reference)
		t.hold(ctx, task)
	}
	t.stepIn(ctx, task)
}

// hold keeps the lock of a task that is a part of another one until its end. The simulator looks every ten milliseconds
// whether the part is done, with the template of a clone locked meanwhile; now the first look takes until it is.
func (t *tasks) hold(ctx *simulator.Context, task *simulator.Task) {
	unlock := ctx.Map.AcquireLock(ctx, task)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held[task.Self] = unlock
}

func (t *tasks) letGo(task types.ManagedObjectReference) {
	t.mu.Lock()
	unlock := t.held[task]
	delete(t.held, task)
	t.mu.Unlock()
	if unlock != nil {
		unlock()
	}
}

func isEnd(changes []types.PropertyChange) bool {
	return slices.ContainsFunc(changes, func(change types.PropertyChange) bool {
		return change.Val == types.TaskInfoStateSuccess || change.Val == types.TaskInfoStateError
	})
}

func (t *tasks) RemoveObject(*simulator.Context, types.ManagedObjectReference) {}

func (t *tasks) stepIn(ctx *simulator.Context, task *simulator.Task) {
	name := taskName(task.Info.Name)
	target := &entity{Self: *task.Info.Entity}
	injected := t.faults.onTask(ctx, name, target.Self)
	delayed := t.delays.has(name)
	work := task.Execute
	task.Execute = func(task *simulator.Task) (types.AnyType, types.BaseMethodFault) {
		if delayed || injected != nil {
			target.release(ctx)
			t.delays.wait(name)
			t.takeUp(ctx, task, target, injected)
		}
		defer t.working(ctx)()
		result, fault := guarded(task, work)
		if name == "reconfigvm" {
			tellHardware(ctx, target.Self)
		}
		return result, fault
	}
}

// working notes that a task is at work, until its end is called. What begins with the same context is a part of it.
func (t *tasks) working(ctx *simulator.Context) (end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, isInner := t.atWork[ctx]; isInner {
		return func() {}
	}
	t.atWork[ctx] = struct{}{}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.atWork, ctx)
	}
}

// unlist takes a task out of the recent ones. The simulator clones by tasks that make a machine and power it on; a vCenter
// lists what it was asked for, and no steps of it.
func unlist(ctx *simulator.Context, task types.ManagedObjectReference) {
	content := ctx.Map.Get(vim25.ServiceInstance).(*simulator.ServiceInstance).Content
	manager := ctx.Map.Get(*content.TaskManager).(*simulator.TaskManager)
	manager.Lock()
	defer manager.Unlock()
	listed := slices.DeleteFunc(slices.Clone(manager.RecentTask), func(each types.ManagedObjectReference) bool {
		return each == task
	})
	ctx.Update(manager, []types.PropertyChange{{Name: "recentTask", Val: listed}})
}

// tellHardware sends those who watch what a machine has by now: the simulator changes it, and tells nobody.
func tellHardware(ctx *simulator.Context, reference types.ManagedObjectReference) {
	vm, ok := ctx.Map.Get(reference).(*simulator.VirtualMachine)
	if !ok {
		return
	}
	ctx.Update(vm, []types.PropertyChange{
		{Name: "config.hardware.numCPU", Val: vm.Config.Hardware.NumCPU},
		{Name: "config.hardware.memoryMB", Val: vm.Config.Hardware.MemoryMB},
	})
}

// takeUp goes on after the wait with the lock held again, or ends the task without its work.
func (t *tasks) takeUp(ctx *simulator.Context, task *simulator.Task, target *entity, injected *injection) {
	cancelled := false
	ctx.WithLock(task, func() { cancelled = task.Info.Cancelled })
	if cancelled {
		runtime.Goexit() // the simulator would turn it into a success
	}
	if injected == nil {
		unlock := ctx.Map.AcquireLock(ctx, target)
		// A lock leaves the registry together with its object, hence while the object is there this is the lock that the
		// simulator unlocks after the work. Were the object gone, it would unlock another one, and panic.
		if ctx.Map.Get(target.Self) != nil {
			return
		}
		unlock()
		injected = &injection{
			fault:   &types.ManagedObjectNotFound{Obj: target.Self},
			message: "The object has already been deleted or has not been completely created",
		}
	}
	ctx.Map.AtomicUpdate(ctx, task, []types.PropertyChange{
		{Name: "info.completeTime", Val: time.Now()},
		{Name: "info.state", Val: types.TaskInfoStateError},
		{Name: "info.error", Val: types.LocalizedMethodFault{Fault: injected.fault, LocalizedMessage: injected.message}},
	})
	runtime.Goexit() // nothing is left to do: the lock is given back and the result is told
}

// guarded keeps a wrong argument, on which the simulator panics, from ending the whole simulator.
func guarded(
	task *simulator.Task,
	work func(*simulator.Task) (types.AnyType, types.BaseMethodFault),
) (result types.AnyType, fault types.BaseMethodFault) {
	defer func() {
		if panicked := recover(); panicked != nil {
			log.Printf("%s panicked: %v\n%s", task.Info.Name, panicked, debug.Stack())
			result, fault = nil, &types.SystemError{Reason: fmt.Sprint(panicked)}
		}
	}()
	return work(task)
}

// entity names what a task works on in the form by which the simulator finds the task's lock.
type entity struct {
	Self types.ManagedObjectReference
}

func (e *entity) Reference() types.ManagedObjectReference { return e.Self }

// release gives back the one hold that the simulator took for the task. A hold is counted for its context, so taking
// one more and letting go twice is letting go of the task's.
func (e *entity) release(ctx *simulator.Context) {
	unlock := ctx.Map.AcquireLock(ctx, e)
	unlock()
	unlock()
}
