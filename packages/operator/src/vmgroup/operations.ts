import type { World } from '@vmwright/runtime';
import type { Ref } from '@vmwright/vsphere';
import type { Action, Doing } from './plan.ts';
import type { Turn } from './turns.ts';

export interface OperationsOptions {
  readonly world: Pick<World, 'monotonic' | 'random' | 'after'>;
  /** Told of the group whose operation has ended. */
  readonly wake: (group: string) => void;
}

/** What is done to the machine of a slot, from the call to the end of its last task. */
export interface Operation {
  readonly what: Action['do'];
  /** As it reads before a colon: "powering machine x on". */
  readonly words: string;
  /** Tells the task that vCenter is at; resolves when the last has ended. @throws how it failed */
  readonly run: (at: (task: Ref<'Task'>) => void) => Promise<void>;
  /** Whether what it has done shows in the inventory. */
  readonly shows: () => boolean;
}

/** vCenter does not do what a machine was taken down for; the machine is up again. */
export class InVainError extends Error {
  constructor(cause: unknown) {
    super('a machine was taken down in vain', { cause });
    this.name = 'InVainError';
  }
}

/** How something went wrong, and what that was. */
export interface Failed {
  readonly error: unknown;
  readonly words: string;
}

interface Running extends Doing {
  task: string | undefined;
  /** When it had succeeded; what it has done may take a while to show. */
  doneAt: number | undefined;
  readonly shows: () => boolean;
}

/** After which something is left alone for a while. */
interface Rest {
  /** Undefined where nothing went wrong, and yet it should not be done all the time. */
  readonly failed: Failed | undefined;
  /** In a row. */
  readonly count: number;
  readonly until: number;
}

/**
 * What rests: a slot; the changing of its machine, which goes on as it is; clones, which for all of a group fail for the
 * same reasons; and looking for their template.
 */
type Resting = number | `changing ${number}` | 'clone' | 'template';

/** What is done shows within this time; else it has been undone, and is done again. */
const SHOWN_MS = 30_000;
const FIRST_REST_MS = 1_000;
const LONGEST_REST_MS = 60_000;
/** What takes a machine down each time is not tried soon again. */
const IN_VAIN_REST_MS = 10 * 60_000;
/** A rest after which nothing more was heard is forgotten: what was wanted has come about, or is not wanted. */
const REMEMBERED_MS = 60_000;
/** A task that takes longer (a question that nobody answers, a datastore that is gone) keeps nobody else waiting. */
const TURN_MS = 10 * 60_000;

/**
 * What is under way for each group. A reconcile begins operations and does not wait for their end; that wakes the group.
 *
 * Guarantees: one operation a slot at a time, also until what it has done shows. One that has failed is not tried again
 * before a while that grows with each failure; nor is a machine switched on that goes off again and again.
 */
export class Operations {
  readonly #options: OperationsOptions;
  readonly #groups = new Map<string, Map<number, Running>>();
  readonly #rests = new Map<string, Map<Resting, Rest>>();

  constructor(options: OperationsOptions) {
    this.#options = options;
  }

  /** What is under way, by slot. */
  of(group: string): ReadonlyMap<number, Doing> {
    return this.#running(group);
  }

  /** Whether vCenter is done with all that it was asked for, and not all of it shows. */
  isWaitingToShow(group: string): boolean {
    const running = this.#running(group);
    return running.size > 0 && running.values().every(({ doneAt }) => doneAt !== undefined);
  }

  /** Without what shows by now. */
  #running(group: string): ReadonlyMap<number, Running> {
    const running = this.#groups.get(group) ?? new Map<number, Running>();
    for (const [slot, { doneAt, shows }] of running)
      if (doneAt !== undefined && (shows() || this.#now - doneAt > SHOWN_MS)) running.delete(slot);
    if (running.size === 0) this.#groups.delete(group);
    return running;
  }

  /** Slots to which something could not be done, and which are left alone for a while. */
  restingOf(group: string): ReadonlySet<number> {
    return new Set(this.#resting(group).flatMap(([slot]) => (typeof slot === 'number' ? slot : [])));
  }

  /** Slots whose machines were taken down in vain; they are left as they are for a while. */
  inVainOf(group: string): ReadonlySet<number> {
    const slots = this.#resting(group).flatMap(([key]) => /^changing (\d+)$/.exec(String(key))?.[1] ?? []);
    return new Set(slots.map(Number));
  }

  /** Whether clones could not be made, and none is tried for a while. */
  isCloningAtRest(group: string): boolean {
    return this.#resting(group).some(([slot]) => slot === 'clone');
  }

  /** Whether the template could not be found, and is not looked for for a while. */
  isLookingAtRest(group: string): boolean {
    return this.#resting(group).some(([key]) => key === 'template');
  }

  /** How the last that failed, and has not succeeded since, did so. */
  failureOf(group: string): Failed | undefined {
    const rests = this.#rests.get(group);
    for (const [slot, { until }] of rests ?? []) if (this.#now - until > REMEMBERED_MS) rests?.delete(slot);
    return [...(rests?.values() ?? [])].findLast(({ failed }) => failed !== undefined)?.failed;
  }

  /** When, on the monotonic clock, the group is to be looked at again, though nothing may happen until then. */
  nextLookAt(group: string): number | undefined {
    const running = [...(this.#groups.get(group)?.values() ?? [])];
    const times = [
      ...this.#resting(group).map(([, { until }]) => until),
      ...running.flatMap(({ doneAt }) => (doneAt === undefined ? [] : doneAt + SHOWN_MS + 1)),
    ].filter((time) => time > this.#now);
    return times.length === 0 ? undefined : Math.min(...times);
  }

  /** @returns once vCenter is at it, or it has ended */
  begin(group: string, slot: number, operation: Operation, turn: Turn): Promise<void> {
    const { what, words, run, shows } = operation;
    const running: Running = { what, shows, task: undefined, doneAt: undefined };
    const slots = this.#groups.get(group) ?? new Map<number, Running>();
    this.#groups.set(group, slots.set(slot, running));
    const begun = Promise.withResolvers<void>();
    const at = (task: Ref<'Task'>) => {
      running.task = task.value;
      begun.resolve();
    };
    const late = this.#options.world.after(TURN_MS, () => turn.end());
    const end = () => {
      late.cancel();
      running.task = undefined;
      turn.end();
      begun.resolve();
      this.#options.wake(group);
    };
    const resting = what === 'clone' ? 'clone' : slot;
    // One of a time that was forgotten says nothing about now.
    const counts = () => this.#groups.get(group)?.get(slot) === running;
    run(at).then(
      () => {
        running.doneAt = this.#now;
        if (what === 'resize' || what === 'reconfigure') this.#rests.get(group)?.delete(`changing ${slot}`);
        if (what !== 'powerOn') this.#rests.get(group)?.delete(resting);
        else if (counts()) this.#rest(group, resting, undefined);
        end();
      },
      (error: unknown) => {
        if (counts()) {
          const isInVain = error instanceof InVainError;
          const failed = { error: isInVain ? error.cause : error, words };
          if (isInVain) this.#rest(group, `changing ${slot}`, failed, IN_VAIN_REST_MS);
          else this.#rest(group, resting, failed);
        }
        slots.delete(slot);
        end();
      },
    );
    return begun.promise;
  }

  /** Clones could not even be begun. */
  cannotClone(group: string, failed: Failed): void {
    this.#rest(group, 'clone', failed);
  }

  /** The template was looked for. @param failed how that went wrong */
  looked(group: string, failed?: Failed): void {
    if (failed === undefined) this.#rests.get(group)?.delete('template');
    else this.#rest(group, 'template', failed);
  }

  /** Something else is wanted now: what went wrong before says nothing about it. */
  forgive(group: string): void {
    this.#rests.delete(group);
  }

  /** Nothing is remembered of any. */
  clear(): void {
    this.#groups.clear();
    this.#rests.clear();
  }

  /** Nothing of it is remembered: the group is gone. */
  forget(group: string): void {
    this.#groups.delete(group);
    this.#rests.delete(group);
  }

  #resting(group: string): [Resting, Rest][] {
    return [...(this.#rests.get(group) ?? [])].filter(([, { until }]) => until > this.#now);
  }

  #rest(group: string, resting: Resting, failed: Failed | undefined, leastMs = 0): void {
    const rests = this.#rests.get(group) ?? new Map<Resting, Rest>();
    const before = rests.get(resting);
    const isSame = (before?.failed === undefined) === (failed === undefined);
    const count = isSame ? (before?.count ?? 0) + 1 : 1;
    const restMs = Math.max(leastMs, Math.min(FIRST_REST_MS * 2 ** (count - 1), LONGEST_REST_MS));
    const until = this.#now + restMs * (0.5 + this.#options.world.random());
    rests.delete(resting); // the newest last
    this.#rests.set(group, rests.set(resting, { failed, count, until }));
  }

  get #now(): number {
    return this.#options.world.monotonic();
  }
}
