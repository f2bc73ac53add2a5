import type { World } from '@vmwright/runtime';
import type { Ref } from '@vmwright/vsphere';
import type { Action, Doing } from './plan.ts';
import type { Turn } from './turns.ts';

export interface OperationsOptions {
  readonly world: Pick<World, 'monotonic' | 'random'>;
  /** Told of the group whose operation has ended. */
  readonly wake: (group: string) => void;
}

/** What is done to the machine of a slot, from the call to the end of its last task. */
export interface Operation {
  readonly what: Action['do'];
  /** Tells the task that vCenter is at; resolves when the last has ended. @throws how it failed */
  readonly run: (at: (task: Ref<'Task'>) => void) => Promise<void>;
  /** Whether what it has done shows in the inventory. */
  readonly shows: () => boolean;
}

interface Running extends Doing {
  task: string | undefined;
  /** When it had succeeded; what it has done may take a while to show. */
  doneAt: number | undefined;
  readonly shows: () => boolean;
}

interface Failure {
  readonly count: number;
  readonly until: number;
  readonly error: unknown;
}

/** What is done shows within this time; else it has been undone, and is done again. */
const SHOWN_MS = 30_000;
const FIRST_REST_MS = 1_000;
const LONGEST_REST_MS = 60_000;

/**
 * What is under way for each group. A reconcile begins operations and does not wait for their end; that wakes the group.
 *
 * Guarantees: one operation a slot at a time, also until what it has done shows. One that has failed is not tried again
 * before a while that grows with each failure; clones of one group share theirs, since they fail for the same reasons.
 */
export class Operations {
  readonly #options: OperationsOptions;
  readonly #groups = new Map<string, Map<number, Running>>();
  readonly #failures = new Map<string, Map<number | 'clone', Failure>>();

  constructor(options: OperationsOptions) {
    this.#options = options;
  }

  /** What is under way, by slot. */
  of(group: string): ReadonlyMap<number, Doing> {
    const running = this.#groups.get(group) ?? new Map<number, Running>();
    for (const [slot, { doneAt, shows }] of running)
      if (doneAt !== undefined && (shows() || this.#now - doneAt > SHOWN_MS)) running.delete(slot);
    if (running.size === 0) this.#groups.delete(group);
    return running;
  }

  /** What has failed and is left alone for a while, by slot. */
  restingOf(group: string): ReadonlySet<number | 'clone'> {
    const failures = [...(this.#failures.get(group) ?? [])];
    return new Set(failures.flatMap(([slot, { until }]) => (until > this.#now ? slot : [])));
  }

  /** How the last that failed, and has not succeeded since, did so. */
  errorOf(group: string): unknown {
    return [...(this.#failures.get(group)?.values() ?? [])].at(-1)?.error;
  }

  /** After which the group is to be looked at again, though nothing may happen until then. */
  againMs(group: string): number | undefined {
    const failures = [...(this.#failures.get(group)?.values() ?? [])];
    const running = [...(this.#groups.get(group)?.values() ?? [])];
    const times = [
      ...failures.map(({ until }) => until),
      ...running.flatMap(({ doneAt }) => (doneAt === undefined ? [] : doneAt + SHOWN_MS + 1)),
    ].flatMap((time) => (time > this.#now ? time - this.#now : []));
    return times.length === 0 ? undefined : Math.min(...times);
  }

  /** @returns once vCenter is at it, or it has ended */
  begin(group: string, slot: number, operation: Operation, turn: Turn): Promise<void> {
    const { what, run, shows } = operation;
    const running: Running = { what, shows, task: undefined, doneAt: undefined };
    const slots = this.#groups.get(group) ?? new Map<number, Running>();
    this.#groups.set(group, slots.set(slot, running));
    const begun = Promise.withResolvers<void>();
    const at = (task: Ref<'Task'>) => {
      running.task = task.value;
      begun.resolve();
    };
    const end = () => {
      running.task = undefined;
      turn.end();
      begun.resolve();
      this.#options.wake(group);
    };
    const rests = what === 'clone' ? 'clone' : slot;
    run(at).then(
      () => {
        running.doneAt = this.#now;
        this.#failures.get(group)?.delete(rests);
        end();
      },
      (error: unknown) => {
        // One of a time that was forgotten says nothing about now.
        if (this.#groups.get(group)?.get(slot) === running) this.#failed(group, rests, error);
        slots.delete(slot);
        end();
      },
    );
    return begun.promise;
  }

  /** Nothing is remembered of any. */
  clear(): void {
    this.#groups.clear();
    this.#failures.clear();
  }

  /** Nothing of it is remembered: the group is gone. */
  forget(group: string): void {
    this.#groups.delete(group);
    this.#failures.delete(group);
  }

  #failed(group: string, slot: number | 'clone', error: unknown): void {
    const failures = this.#failures.get(group) ?? new Map<number | 'clone', Failure>();
    const count = (failures.get(slot)?.count ?? 0) + 1;
    const restMs = Math.min(FIRST_REST_MS * 2 ** (count - 1), LONGEST_REST_MS);
    const until = this.#now + restMs * (0.5 + this.#options.world.random());
    failures.delete(slot); // the newest last
    this.#failures.set(group, failures.set(slot, { count, until, error }));
  }

  get #now(): number {
    return this.#options.world.monotonic();
  }
}
