import type { Timer } from '@vmwright/core';
import type { Bound, Calls, ChangeOptions } from '../calls/calls.ts';
import { StoppedError, TaskGoneError } from '../errors.ts';
import { FaultError, faultOf } from '../faults.ts';
import type { PropertyWatcher } from '../feed/feed.ts';
import type { Source } from '../feed/source.ts';
import { listSpec, objectSpec, type Ref, retrieve } from '../properties/properties.ts';
import type { Vim25 } from '../vim25/vim25.generated.ts';
import type { VsphereWorld } from '../world.ts';
import { TaskPace } from './task-pace.ts';
import { stateIn, TASK_PROPERTIES, type TaskState, taskName, withChanges } from './task-state.ts';

export interface FollowOptions {
  readonly signal?: AbortSignal | undefined;
  /** What the task does, as errors say it: "cloning 'x'". */
  readonly what?: string | undefined;
}

interface Follower {
  readonly what: string | undefined;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

interface Followed {
  readonly ref: Ref<'Task'>;
  readonly followers: Set<Follower>;
  /** Until it is asked itself, where it is not told of. */
  doubt: Timer | undefined;
}

export interface TaskFollowerOptions {
  readonly world: Pick<VsphereWorld, 'after'>;
  readonly calls: Calls;
  /** The feed that tells. */
  readonly feed: () => Pick<PropertyWatcher, 'start'>;
  /** Told when the last one that was followed is so no more. */
  readonly idle?: (() => void) | undefined;
  /** Told of what goes wrong; it goes on. */
  readonly troubled?: ((error: unknown) => void) | undefined;
}

/** A task that was just begun is told of long before; one that is not is none of the recent ones. */
const DOUBT_MS = 1_000;
const LONGEST_DOUBT_MS = 30_000;

/**
 * Follows tasks to their end, all by one filter on vCenter's recent tasks: those that run, and those that have ended
 * lately, of whoever. So a task costs no call of its own, and is known as soon as it has begun.
 *
 * Flow: while one is followed, vCenter is asked for changes, and not otherwise. One that is not among the recent ones
 * (it ended long ago, two hundred have ended since, or vCenter was restarted) is asked itself, now and then.
 *
 * Guarantees: each that is followed is settled by how it ended, across lost connections, sessions and restarts of
 * vCenter; one that vCenter knows nothing of any more, by a TaskGoneError.
 */
export class TaskFollower implements Source {
  /**
   * When its feed asks.
   * @internal
   */
  readonly pace: TaskPace;
  readonly #options: TaskFollowerOptions;
  readonly #tasks = new Map<string, Followed>();
  /** What was told of the recent ones. It is told once, and who follows one later wants to know as well. */
  readonly #states = new Map<string, TaskState>();
  /** Whether what is recent has been told, so that what was not told of is not. */
  #isLive = false;
  readonly #stopping = new AbortController();

  constructor(options: TaskFollowerOptions) {
    this.#options = options;
    this.pace = new TaskPace(options.world, () => this.isFollowing);
  }

  /** Whether there is one whose end is waited for. */
  get isFollowing(): boolean {
    return this.#tasks.size > 0;
  }

  /**
   * What the task gives, once it has succeeded: that of a clone is the new machine.
   * @throws FaultError how it failed, TaskGoneError, StoppedError, and the signal's reason
   */
  follow(ref: Ref<'Task'>, { signal, what }: FollowOptions = {}): Promise<unknown> {
    if (this.#stopping.signal.aborted) return Promise.reject(this.#stopping.signal.reason);
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const task = this.#tasks.get(ref.value) ?? { ref, followers: new Set(), doubt: undefined };
      const leave = () => {
        signal?.removeEventListener('abort', abort);
        task.followers.delete(follower);
        if (task.followers.size === 0) this.#leave(task);
      };
      const abort = () => follower.reject(signal?.reason);
      const follower: Follower = {
        what,
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
      this.#doubt(task, DOUBT_MS);
      this.#options.feed().start();
      this.pace.follow();
    });
  }

  /** Asks vCenter to end a task before its time; how it ends is told to those who follow it. */
  async cancel(ref: Ref<'Task'>, options?: ChangeOptions): Promise<void> {
    await this.#options.calls.change('CancelTask', () => ref, {}, options);
  }

  /** @internal */
  async open({ login }: Bound): Promise<Vim25['PropertyFilterSpec']> {
    const { taskManager } = login.content;
    if (taskManager === undefined)
      throw new FaultError('following tasks', 'NotSupported', {}, 'no task manager');
    this.#states.clear();
    return listSpec(taskManager, 'recentTask', { Task: TASK_PROPERTIES });
  }

  apply(updates: readonly Vim25['ObjectUpdate'][]): void {
    this.pace.told(updates.some(({ obj }) => this.#tasks.has(obj.value)));
    for (const update of updates) {
      const { value } = update.obj;
      const task = this.#tasks.get(value);
      if (update.kind === 'leave') {
        this.#states.delete(value);
        if (task !== undefined) this.#doubt(task, 0); // it may have ended unseen
        continue;
      }
      const state = withChanges(this.#states.get(value) ?? {}, update);
      this.#states.set(value, state);
      if (task !== undefined) this.#settle(task, state);
    }
  }

  settled(): void {
    this.#isLive = true;
    for (const task of [...this.#tasks.values()]) this.#doubt(task, 0);
  }

  interrupted(): void {
    this.#isLive = false;
  }

  resumed(): void {
    this.#isLive = true;
    for (const task of this.#tasks.values()) this.#doubt(task, DOUBT_MS);
  }

  stop(): void {
    const stopped = new StoppedError('the vSphere client was stopped');
    this.#stopping.abort(stopped);
    for (const { followers } of [...this.#tasks.values()])
      for (const follower of [...followers]) follower.reject(stopped);
  }

  /** Tells those who follow a task, where it has ended. */
  #settle({ ref, followers }: Followed, { state, result, error }: TaskState = {}): boolean {
    if (state !== 'success' && state !== 'error') return false;
    for (const { what, resolve, reject } of [...followers]) {
      if (state === 'success') resolve(result);
      else {
        const { fault = {}, localizedMessage = '' } = error ?? {};
        reject(new FaultError(taskName(ref, what), fault._type ?? 'MethodFault', fault, localizedMessage));
      }
    }
    return true;
  }

  /** Asks a task itself after a while, unless it is told of until then. */
  #doubt(task: Followed, ms: number): void {
    task.doubt?.cancel();
    task.doubt = undefined;
    if (!this.#isInDoubt(task)) return;
    task.doubt = this.#options.world.after(ms, () => {
      task.doubt = undefined;
      if (this.#isInDoubt(task)) void this.#ask(task, Math.max(ms, DOUBT_MS));
    });
  }

  /** While nothing is told there is no reason to: all is told when it goes on. */
  #isInDoubt(task: Followed): boolean {
    const { value } = task.ref;
    return this.#isLive && this.#tasks.get(value) === task && !this.#states.has(value);
  }

  async #ask(task: Followed, ms: number): Promise<void> {
    const { calls, troubled } = this.#options;
    const { signal } = this.#stopping;
    try {
      const spec = objectSpec([task.ref], TASK_PROPERTIES);
      const [found] = await calls.reading((bound) => retrieve(bound, spec), { signal });
      if (this.#settle(task, stateIn(found?.properties ?? {}))) return;
    } catch (error) {
      if (signal.aborted) return;
      if (faultOf(error, 'ManagedObjectNotFound') !== undefined) return this.#gone(task);
      troubled?.(error);
    }
    if (task.doubt === undefined) this.#doubt(task, Math.min(ms * 2, LONGEST_DOUBT_MS));
  }

  #gone({ ref, followers }: Followed): void {
    for (const { what, reject } of [...followers]) {
      const words = 'vCenter does not know the task any more; look whether it was carried out';
      reject(new TaskGoneError(`${taskName(ref, what)}: ${words}`));
    }
  }

  #leave(task: Followed): void {
    task.doubt?.cancel();
    this.#tasks.delete(task.ref.value);
    if (!this.isFollowing) this.#options.idle?.();
  }
}
