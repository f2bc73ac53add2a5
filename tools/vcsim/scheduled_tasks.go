package main

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// scheduledTasks imitates vCenter's ScheduledTaskManager, which the simulator lacks. Clients can read and watch the tasks, but not
// create them, and no task ever runs: the control port sets the tasks and their state.
type scheduledTasks struct {
	inventory *inventory
	mu        sync.Mutex // serialises changes of the list
	manager   *mo.ScheduledTaskManager
}

type scheduledTaskState struct {
	// Entity is the name or reference of a host or cluster.
	Entity string `json:"entity"`
	// Method is a vim25 method, such as EnterMaintenanceMode_Task.
	Method string `json:"method"`
	// At is the next time at which the task runs; absent if it will not run again.
	At      *time.Time `json:"at"`
	Enabled *bool      `json:"enabled"`
	Running bool       `json:"running"`
}

func (s scheduledTaskState) check() error {
	switch {
	case s.Entity == "":
		return errors.New("entity, the name of a host or cluster, is required")
	case !isMethod(s.Method):
		return fmt.Errorf("unknown vim25 method %q; use a name such as EnterMaintenanceMode_Task", s.Method)
	}
	return nil
}

func newScheduledTasks(inventory *inventory, self types.ManagedObjectReference) *scheduledTasks {
	s := &scheduledTasks{inventory: inventory, manager: &mo.ScheduledTaskManager{Self: self}}
	inventory.context().Map.Put(s.manager)
	return s
}

// put creates the task with this name, or replaces it.
func (s *scheduledTasks) put(name string, state scheduledTaskState) error {
	entity, err := s.entity(state.Entity)
	if err != nil {
		return err
	}
	info := types.ScheduledTaskInfo{
		ScheduledTaskSpec: types.ScheduledTaskSpec{
			Name: name, Enabled: state.Enabled == nil || *state.Enabled,
			Scheduler: &types.OnceTaskScheduler{RunAt: state.At}, Action: &types.MethodAction{Name: state.Method},
		},
		Entity: entity, TaskObject: entity, NextRunTime: state.At,
		LastModifiedTime: time.Now(), LastModifiedUser: "control port", State: types.TaskInfoStateQueued,
	}
	if state.Running {
		now := time.Now()
		info.State, info.PrevRunTime = types.TaskInfoStateRunning, &now
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if task := s.find(name); task != nil {
		info.ScheduledTask = task.Self
		s.inventory.update(task, func(changes *changes) { changes.set("info", info) })
		return nil
	}
	task := &mo.ScheduledTask{}
	task.Self = types.ManagedObjectReference{Type: "ScheduledTask", Value: "schedule-" + name}
	info.ScheduledTask = task.Self
	task.Info = info
	s.inventory.context().Map.Put(task)
	s.setList(append(slices.Clone(s.manager.ScheduledTask), task.Self))
	return nil
}

func (s *scheduledTasks) remove(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	task := s.find(name)
	if task == nil {
		return notFound("scheduled task %q not found", name)
	}
	s.setList(slices.DeleteFunc(slices.Clone(s.manager.ScheduledTask), func(other types.ManagedObjectReference) bool {
		return other == task.Self
	}))
	ctx := s.inventory.context()
	ctx.Map.Remove(ctx, task.Self)
	return nil
}

func (s *scheduledTasks) find(name string) *mo.ScheduledTask {
	reference := types.ManagedObjectReference{Type: "ScheduledTask", Value: "schedule-" + name}
	task, _ := s.inventory.context().Map.Get(reference).(*mo.ScheduledTask)
	return task
}

func (s *scheduledTasks) setList(tasks []types.ManagedObjectReference) {
	s.inventory.update(s.manager, func(changes *changes) { changes.set("scheduledTask", tasks) })
}

func (s *scheduledTasks) entity(name string) (types.ManagedObjectReference, error) {
	host, err := s.inventory.find("HostSystem", "host", name)
	if errors.As(err, &notFoundError{}) {
		host, err = s.inventory.find("ClusterComputeResource", "host or cluster", name)
	}
	if err != nil {
		return types.ManagedObjectReference{}, err
	}
	return host.Reference(), nil
}
