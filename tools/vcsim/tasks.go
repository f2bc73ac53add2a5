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

// tasks delays tasks and injects faults into them. The simulator's own delays are a global map that running tasks read without a
// lock, and the simulator holds the object's lock during the delay, so that clones of one template would run one after the
// other. Therefore tasks is notified of every task before it runs, and wraps its work.
type tasks struct {
	faults *faults
	delays *delays

	mu      sync.Mutex
	created map[types.ManagedObjectReference]*simulator.Task // created, not started
	running map[*simulator.Context]struct{}                  // contexts of calls with a running task
	held    map[types.ManagedObjectReference]func()          // unlock functions of subtasks, called when they end
}

func newTasks(faults *faults) *tasks {
	return &tasks{
		faults: faults, delays: newDelays(),
		created: map[types.ManagedObjectReference]*simulator.Task{},
		running: map[*simulator.Context]struct{}{},
		held:    map[types.ManagedObjectReference]func(){},
	}
}

// taskName normalises a task name: CloneVm, cloneVm and CloneVm_Task are the same.
func taskName(name string) string {
	return strings.ToLower(strings.TrimSuffix(name, "_Task"))
}

func (t *tasks) Reference() types.ManagedObjectReference {
	return types.ManagedObjectReference{Type: "VmwrightTasks", Value: "VmwrightTasks"}
}

func (t *tasks) PutObject(_ *simulator.Context, object mo.Reference) {
	if task, ok := object.(*simulator.Task); ok {
		t.mu.Lock()
		t.created[task.Self] = task
		t.mu.Unlock()
	}
}

// UpdateObject intercepts a task when it is set to "running": its goroutine is not started yet, and ctx is the context under which
// the task holds its locks.
func (t *tasks) UpdateObject(ctx *simulator.Context, object mo.Reference, changes []types.PropertyChange) {
	reference := object.Reference()
	if reference.Type != "Task" {
		return
	}
	if isEnd(changes) {
		t.releaseHeld(reference)
	}
	t.mu.Lock()
	task := t.created[reference]
	delete(t.created, reference)
	_, isInner := t.running[ctx]
	t.mu.Unlock()
	if task == nil || task.Execute == nil {
		return
	}
	if isInner {
		removeFromRecent(ctx, reference)
		t.hold(ctx, task)
	}
	t.intercept(ctx, task)
}

// hold keeps the lock of a subtask until it ends. The simulator polls a subtask every 10 ms while the template of a clone is
// locked; with the lock held, the first poll blocks until the subtask has ended.
func (t *tasks) hold(ctx *simulator.Context, task *simulator.Task) {
	unlock := ctx.Map.AcquireLock(ctx, task)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held[task.Self] = unlock
}

func (t *tasks) releaseHeld(task types.ManagedObjectReference) {
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

// intercept wraps the work of a task with its delay and fault.
func (t *tasks) intercept(ctx *simulator.Context, task *simulator.Task) {
	name := taskName(task.Info.Name)
	target := &entity{Self: *task.Info.Entity}
	injected := t.faults.onTask(ctx, name, target.Self)
	delayed := t.delays.has(name)
	work := task.Execute
	task.Execute = func(task *simulator.Task) (types.AnyType, types.BaseMethodFault) {
		if delayed || injected != nil {
			target.release(ctx)
			t.delays.wait(name)
			t.resumeOrFail(ctx, task, target, injected)
		}
		defer t.markRunning(ctx)()
		result, fault := recovered(task, work)
		if name == "reconfigvm" {
			notifyHardware(ctx, target.Self)
		}
		return result, fault
	}
}

// markRunning records that a task is running until end is called. Tasks that start with the same context are its subtasks.
func (t *tasks) markRunning(ctx *simulator.Context) (end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, isInner := t.running[ctx]; isInner {
		return func() {}
	}
	t.running[ctx] = struct{}{}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.running, ctx)
	}
}

// removeFromRecent removes a subtask from recentTask. The simulator clones with subtasks that create and power on the VM; vCenter
// lists only the requested task.
func removeFromRecent(ctx *simulator.Context, task types.ManagedObjectReference) {
	content := ctx.Map.Get(vim25.ServiceInstance).(*simulator.ServiceInstance).Content
	manager := ctx.Map.Get(*content.TaskManager).(*simulator.TaskManager)
	manager.Lock()
	defer manager.Unlock()
	recent := slices.DeleteFunc(slices.Clone(manager.RecentTask), func(each types.ManagedObjectReference) bool {
		return each == task
	})
	ctx.Update(manager, []types.PropertyChange{{Name: "recentTask", Val: recent}})
}

// notifyHardware notifies property collectors of the hardware of a VM, which the simulator changes without notification.
func notifyHardware(ctx *simulator.Context, reference types.ManagedObjectReference) {
	vm, ok := ctx.Map.Get(reference).(*simulator.VirtualMachine)
	if !ok {
		return
	}
	ctx.Update(vm, []types.PropertyChange{
		{Name: "config.hardware.numCPU", Val: vm.Config.Hardware.NumCPU},
		{Name: "config.hardware.memoryMB", Val: vm.Config.Hardware.MemoryMB},
	})
}

// resumeOrFail acquires the object's lock again after the delay, or ends the task, and its goroutine, without doing its work.
func (t *tasks) resumeOrFail(ctx *simulator.Context, task *simulator.Task, target *entity, injected *injection) {
	cancelled := false
	ctx.WithLock(task, func() { cancelled = task.Info.Cancelled })
	if cancelled {
		runtime.Goexit() // otherwise the simulator would set the task to success
	}
	if injected == nil {
		unlock := ctx.Map.AcquireLock(ctx, target)
		// The registry removes a lock together with its object. While the object exists, this is the lock that the simulator
		// releases after the work; if the object is gone, the simulator would release another lock and panic.
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
	runtime.Goexit() // the lock is already released and the error is already reported
}

// recovered turns a panic of the simulator, for example on an invalid argument, into a fault of the task.
func recovered(
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

// entity is the object of a task, in the form that the simulator uses to find its lock.
type entity struct {
	Self types.ManagedObjectReference
}

func (e *entity) Reference() types.ManagedObjectReference { return e.Self }

// release releases the lock that the simulator acquired for the task. Locks are counted per context, so acquiring it once more and
// releasing it twice releases the lock of the task.
func (e *entity) release(ctx *simulator.Context) {
	unlock := ctx.Map.AcquireLock(ctx, e)
	unlock()
	unlock()
}
