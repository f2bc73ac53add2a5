import type { Timer } from '@vmwright/core';
import { StoppedError, TaskGoneError } from '../errors.ts';
import { FaultError, faultOf } from '../faults.ts';
import { listSpec, objectSpec, type Ref, retrieve } from '../properties/properties.ts';
import type { PropertyWatcher } from '../property-watcher/property-watcher.ts';
import type { PropertySubscriber } from '../property-watcher/subscriber.ts';
import type { BoundSession, ChangeOptions, SessionClient } from '../session/session-client.ts';
import type { Vim25 } from '../vim25/vim25.generated.ts';
import type { VsphereWorld } from '../world.ts';
import { TaskPollSchedule } from './task-poll-schedule.ts';
import { stateFrom, TASK_PROPERTIES, type TaskState, taskName, withChanges } from './task-state.ts';

export interface FollowOptions {
  readonly signal?: AbortSignal | undefined;
  /** Name of the task's operation in errors: "cloning 'x'". */
  readonly description?: string | undefined;
}

interface Follower {
  readonly description: string | undefined;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

interface FollowedTask {
  readonly ref: Ref<'Task'>;
  readonly followers: Set<Follower>;
  /** Timer after which the task is read directly, unless the watcher has reported the task by then. */
  readTimer: Timer | undefined;
}

export interface TaskFollowerOptions {
  readonly world: Pick<VsphereWorld, 'after'>;
  readonly calls: SessionClient;
  /** Watcher that reports the recent tasks. */
  readonly watcher: () => Pick<PropertyWatcher, 'start'>;
  /** Called when the last followed task has ended. */
  readonly onIdle?: (() => void) | undefined;
  /** Called with errors that are retried. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** Delay before a task is first read directly. The watcher reports a recent task earlier, so that it needs no read. */
const READ_DELAY_MS = 1_000;
const MAX_READ_DELAY_MS = 30_000;

/**
 * Waits for the end of tasks. All tasks share one filter on vCenter's list of recent tasks, so a task needs no request
 * of its own. The list contains the running and recently ended tasks of all users.
 *
 * Flow: vCenter is polled only while at least one task is followed. A task that is not in the list is read directly
 * from time to time. The list may lack a task because it ended long ago, because 200 tasks are newer, or because
 * vCenter was restarted.
 *
 * Guarantees: `follow` settles with the outcome of the task despite lost connections, ended sessions and restarts of
 * vCenter. If vCenter does not know the task any more, `follow` rejects with a TaskGoneError.
 */
export class TaskFollower implements PropertySubscriber {
  /** Schedule of the watcher that reports the tasks. @internal */
  readonly schedule: TaskPollSchedule;
  readonly #options: TaskFollowerOptions;
  readonly #tasks = new Map<string, FollowedTask>();
  /**
   * States of the recent tasks. Kept, because vCenter reports each state only once, and `follow` may be
   * called after that.
   */
  readonly #states = new Map<string, TaskState>();
  /** Whether all recent tasks were reported. If so, a task that is not in `#states` is not one of the recent tasks. */
  #isLive = false;
  readonly #stopping = new AbortController();

  constructor(options: TaskFollowerOptions) {
    this.#options = options;
    this.schedule = new TaskPollSchedule(options.world, () => this.isFollowing);
  }

  /** Whether any task is followed. */
  get isFollowing(): boolean {
    return this.#tasks.size > 0;
  }

  /**
   * Waits for a task to succeed.
   * @returns the result of the task; for a clone, the reference of the new machine
   * @throws FaultError when the task failed, TaskGoneError, StoppedError, the reason of the aborted signal
   */
  follow(ref: Ref<'Task'>, { signal, description }: FollowOptions = {}): Promise<unknown> {
    if (this.#stopping.signal.aborted) return Promise.reject(this.#stopping.signal.reason);
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const task = this.#tasks.get(ref.value) ?? { ref, followers: new Set(), readTimer: undefined };
      const leave = () => {
        signal?.removeEventListener('abort', abort);
        task.followers.delete(follower);
        if (task.followers.size === 0) this.#unfollow(task);
      };
      const abort = () => follower.reject(signal?.reason);
      const follower: Follower = {
        description,
        resolve: (result) => {
          leave();
          resolve(result);
        },
        reject: (error) => {
          leave();
          reject(error);
        },
      };
      signal?.addEventListener('abort', abort, { once: true });
      task.followers.add(follower);
      this.#tasks.set(ref.value, task);
      if (this.#settle(task, this.#states.get(ref.value))) return;
      this.#scheduleRead(task, READ_DELAY_MS);
      this.#options.watcher().start();
      this.schedule.followed();
    });
  }

  /** Asks vCenter to cancel a task. `follow` reports the outcome of the task. */
  async cancel(ref: Ref<'Task'>, options?: ChangeOptions): Promise<void> {
    await this.#options.calls.change('CancelTask', () => ref, {}, options);
  }

  /** @internal */
  async openFilter({ login }: BoundSession): Promise<Vim25['PropertyFilterSpec']> {
    const { taskManager } = login.content;
    if (taskManager === undefined)
      throw new FaultError('following tasks', 'NotSupported', {}, 'the server has no task manager');
    this.#states.clear();
    return listSpec(taskManager, 'recentTask', { Task: TASK_PROPERTIES });
  }

  applyUpdates(updates: readonly Vim25['ObjectUpdate'][]): void {
    this.schedule.received(updates.some(({ obj }) => this.#tasks.has(obj.value)));
    for (const update of updates) {
      const { value } = update.obj;
      const task = this.#tasks.get(value);
      if (update.kind === 'leave') {
        this.#states.delete(value);
        // The task may have left the list of recent tasks before its end was reported.
        if (task !== undefined) this.#scheduleRead(task, 0);
        continue;
      }
      const state = withChanges(this.#states.get(value) ?? {}, update);
      this.#states.set(value, state);
      if (task !== undefined) this.#settle(task, state);
    }
  }

  onSynced(): void {
    this.#isLive = true;
    for (const task of [...this.#tasks.values()]) this.#scheduleRead(task, 0);
  }

  onInterrupted(): void {
    this.#isLive = false;
  }

  onResumed(): void {
    this.#isLive = true;
    for (const task of this.#tasks.values()) this.#scheduleRead(task, READ_DELAY_MS);
  }

  stop(): void {
    const stopped = new StoppedError('the vSphere client was stopped');
    this.#stopping.abort(stopped);
    for (const { followers } of [...this.#tasks.values()])
      for (const follower of [...followers]) follower.reject(stopped);
  }

  /** Settles the followers of a task that has ended. @returns false while it runs */
  #settle({ ref, followers }: FollowedTask, { state, result, error }: TaskState = {}): boolean {
    if (state !== 'success' && state !== 'error') return false;
    for (const { description, resolve, reject } of [...followers]) {
      if (state === 'success') resolve(result);
      else {
        const { fault = {}, localizedMessage = '' } = error ?? {};
        reject(
          new FaultError(taskName(ref, description), fault._type ?? 'MethodFault', fault, localizedMessage),
        );
      }
    }
    return true;
  }

  /** Schedules a direct read of the task. The read is skipped if the watcher has reported the task by then. */
  #scheduleRead(task: FollowedTask, ms: number): void {
    task.readTimer?.cancel();
    task.readTimer = undefined;
    if (!this.#isUnreported(task)) return;
    task.readTimer = this.#options.world.after(ms, () => {
      task.readTimer = undefined;
      if (this.#isUnreported(task)) void this.#readTask(task, Math.max(ms, READ_DELAY_MS));
    });
  }

  /**
   * Whether a followed task is missing from the recent tasks that the watcher has reported. False while the watch is
   * interrupted, because the reported tasks are incomplete then.
   */
  #isUnreported(task: FollowedTask): boolean {
    const { value } = task.ref;
    return this.#isLive && this.#tasks.get(value) === task && !this.#states.has(value);
  }

  async #readTask(task: FollowedTask, ms: number): Promise<void> {
    const { calls, onError } = this.#options;
    const { signal } = this.#stopping;
    try {
      const spec = objectSpec([task.ref], TASK_PROPERTIES);
      const [found] = await calls.retryRead((bound) => retrieve(bound, spec), { signal });
      if (this.#settle(task, stateFrom(found?.properties ?? {}))) return;
    } catch (error) {
      if (signal.aborted) return;
      if (faultOf(error, 'ManagedObjectNotFound') !== undefined) return this.#rejectAsGone(task);
      onError?.(error);
    }
    if (task.readTimer === undefined) this.#scheduleRead(task, Math.min(ms * 2, MAX_READ_DELAY_MS));
  }

  #rejectAsGone({ ref, followers }: FollowedTask): void {
    for (const { description, reject } of [...followers]) {
      const message = 'vCenter does not know the task any more; check whether it was carried out';
      reject(new TaskGoneError(`${taskName(ref, description)}: ${message}`));
    }
  }

  #unfollow(task: FollowedTask): void {
    task.readTimer?.cancel();
    this.#tasks.delete(task.ref.value);
    if (!this.isFollowing) this.#options.onIdle?.();
  }
}
