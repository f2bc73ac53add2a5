import type { Bound, Calls } from '../calls/calls.ts';
import { StoppedError, TaskGoneError } from '../errors.ts';
import { FaultError } from '../faults.ts';
import type { Feed } from '../feed/feed.ts';
import type { Source } from '../feed/source.ts';
import { SessionView } from '../feed/view.ts';
import { type Ref, viewSpec } from '../properties/properties.ts';
import { backoff, wait } from '../time.ts';
import type { Vim25 } from '../vim25/vim25.generated.ts';
import type { VsphereWorld } from '../world.ts';
import { TASK_PROPERTIES, type TaskState, taskName, withChanges } from './task-state.ts';

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
}

/** The view of a session, and what is in it: also tasks that have ended, until the next ones enter. */
interface Entered {
  readonly bound: Bound;
  readonly view: Ref;
  readonly tasks: Map<string, Ref>;
}

export interface TaskFollowerOptions {
  readonly world: Pick<VsphereWorld, 'after' | 'random'>;
  readonly calls: Calls;
  /** The feed that tells. */
  readonly feed: () => Pick<Feed, 'start' | 'restart'>;
  /** Told of what goes wrong; it goes on. */
  readonly troubled?: ((error: unknown) => void) | undefined;
}

const DELAYS = { firstMs: 100, longestMs: 10_000 };
const GATHER_MS = 5;
const LONGEST_GATHER_MS = 100;

/**
 * Follows tasks to their end, all by one view with one filter: a task costs one call to enter it, and those that enter
 * at the same time share it.
 *
 * Guarantees: each that is followed is settled by how it ended, across lost connections, sessions and restarts of
 * vCenter; one that vCenter knows nothing of any more, by a TaskGoneError.
 */
export class TaskFollower implements Source {
  readonly #options: TaskFollowerOptions;
  readonly #tasks = new Map<string, Followed>();
  readonly #view = new SessionView();
  /** What was told of those in the view. It is told once, and who comes later wants to know as well. */
  readonly #states = new Map<string, TaskState>();
  #current: Entered | undefined;
  #isUpdating = false;
  #news: (() => void) | undefined;
  #stopped: StoppedError | undefined;

  constructor(options: TaskFollowerOptions) {
    this.#options = options;
  }

  /**
   * What the task gives, once it has succeeded: that of a clone is the new machine.
   * @throws FaultError how it failed, TaskGoneError, StoppedError, and the signal's reason
   */
  follow(ref: Ref<'Task'>, { signal, what }: FollowOptions = {}): Promise<unknown> {
    const stopped = this.#stopped;
    if (stopped !== undefined) return Promise.reject(stopped);
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const task = this.#tasks.get(ref.value) ?? { ref, followers: new Set() };
      const leave = () => {
        signal?.removeEventListener('abort', abort);
        task.followers.delete(follower);
        if (task.followers.size === 0) this.#tasks.delete(ref.value);
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
      if (this.#settle(task)) return;
      this.#options.feed().start();
      void this.#update();
    });
  }

  /** Asks vCenter to end a task before its time; how it ends is told to those who follow it. */
  async cancel(ref: Ref<'Task'>, options?: Parameters<Calls['change']>[3]): Promise<void> {
    await this.#options.calls.change('CancelTask', () => ref, {}, options);
  }

  async open(bound: Bound): Promise<Vim25['PropertyFilterSpec']> {
    const { viewManager } = bound.login.content;
    if (viewManager === undefined)
      throw new FaultError('following tasks', 'NotSupported', {}, 'no view manager');
    const view = await this.#view.replace(bound, () => bound.call('CreateListView', viewManager, {}));
    const entered = { bound, view, tasks: new Map() };
    this.#states.clear();
    this.#current = undefined; // who comes now goes in below, or right after
    await this.#bringUpToDate(entered);
    this.#current = entered;
    void this.#update();
    return viewSpec(view, { Task: TASK_PROPERTIES });
  }

  apply(updates: readonly Vim25['ObjectUpdate'][]): void {
    for (const update of updates) {
      const { value } = update.obj;
      if (update.kind === 'leave') {
        this.#gone(value);
        continue;
      }
      this.#states.set(value, withChanges(this.#states.get(value) ?? {}, update));
      const task = this.#tasks.get(value);
      if (task !== undefined) this.#settle(task);
    }
    const news = this.#news;
    this.#news = undefined;
    news?.();
  }

  settled(): void {}

  interrupted(): void {}

  resumed(): void {}

  stop(): void {
    this.#stopped = new StoppedError('the vSphere client was stopped');
    for (const { followers } of [...this.#tasks.values()])
      for (const follower of [...followers]) follower.reject(this.#stopped);
  }

  /** Tells those who follow a task, where it has ended. */
  #settle({ ref, followers }: Followed): boolean {
    const { state, result, error } = this.#states.get(ref.value) ?? {};
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

  /** Brings the view up to date, one call at a time: who comes while one is under way is in the next. */
  async #update(): Promise<void> {
    if (this.#isUpdating) return;
    this.#isUpdating = true;
    const { world, feed, troubled } = this.#options;
    for (let failures = 0; ; ) {
      await this.#gather();
      const current = this.#current;
      if (current === undefined || this.#stopped !== undefined || this.#missing(current).length === 0) break;
      try {
        await this.#bringUpToDate(current);
        failures = 0;
      } catch (error) {
        if (error instanceof FaultError && this.#current === current) {
          this.#current = undefined;
          feed().restart(); // the session has ended or the view is gone: both go into a new one
          continue;
        }
        troubled?.(error);
        await wait(world, backoff(world, failures++, DELAYS));
      }
    }
    this.#isUpdating = false;
  }

  /**
   * Those that begin together enter together. While others are followed, who comes waits for news of these too: it is
   * then that the next ones begin.
   */
  #gather(): Promise<void> {
    const { world } = this.#options;
    const isFollowing = [...this.#tasks.keys()].some((value) => this.#current?.tasks.has(value));
    return new Promise((resolve) => {
      const timer = world.after(isFollowing ? LONGEST_GATHER_MS : GATHER_MS, resolve);
      this.#news = () => {
        timer.cancel();
        world.after(GATHER_MS, resolve);
      };
    });
  }

  async #bringUpToDate({ bound, view, tasks }: Entered): Promise<void> {
    const add = this.#missing({ tasks });
    if (add.length === 0) return;
    const remove = [...tasks.values()].filter(({ value }) => !this.#tasks.has(value));
    const unresolved = await bound.call('ModifyListView', view, { add, remove });
    for (const { value } of remove) {
      tasks.delete(value);
      this.#states.delete(value);
    }
    for (const ref of add) tasks.set(ref.value, ref);
    if (unresolved.length === 0) return;
    for (const { value } of unresolved) {
      tasks.delete(value);
      this.#gone(value);
    }
    await bound.call('ModifyListView', view, { remove: unresolved });
  }

  #missing({ tasks }: Pick<Entered, 'tasks'>): Ref<'Task'>[] {
    return [...this.#tasks.values()].map(({ ref }) => ref).filter(({ value }) => !tasks.has(value));
  }

  #gone(value: string): void {
    this.#states.delete(value);
    const task = this.#tasks.get(value);
    if (task === undefined) return;
    for (const { what, reject } of [...task.followers]) {
      const name = taskName(task.ref, what);
      reject(
        new TaskGoneError(
          `${name}: vCenter does not know the task any more; look whether it was carried out`,
        ),
      );
    }
  }
}
