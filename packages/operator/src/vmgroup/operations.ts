import type { Fence, Logger, Permit, World } from '@vmwright/runtime';
import type { ChangeOptions, Ref } from '@vmwright/vsphere';
import { OperationLog } from './operation-log.ts';
import { type Failed, type Failure, type Pauses, type Resting, Rests } from './rests.ts';
import type { Action, Doing } from './slots.ts';
import { GroupError } from './trouble.ts';

export interface OperationsOptions {
  readonly log: Logger;
  readonly world: Pick<World, 'monotonic' | 'random' | 'after'>;
  /** Told of the group whose operation has ended. */
  readonly wake: (group: string) => void;
}

/** What is done to the machine of a slot, from the call to the end of its last task. */
export interface Operation {
  readonly what: Action['do'];
  /** Name of the machine, for log lines. */
  readonly machine: string;
  /** As it reads before a colon: "powering machine x on". */
  readonly words: string;
  /**
   * Runs it to its end, with `at` called for each vCenter task.
   * @param scope the operation's own signal and fence, to be passed to every call
   * @throws how it failed
   */
  readonly run: (at: (task: Ref<'Task'>) => void, scope: ChangeOptions) => Promise<void>;
  /** Whether what it has done shows in the inventory. */
  readonly shows: () => boolean;
  /** After it succeeded: whether it proved that the slot has no machine left anywhere in vCenter. */
  readonly provesGone?: () => boolean;
}

/** vCenter does not do what a machine was taken down for; the machine is up again. */
export class InVainError extends Error {
  /** Whether the same may succeed another time. */
  readonly mayPass: boolean;

  constructor(cause: unknown, options: { readonly mayPass: boolean }) {
    super('a machine was taken down in vain', { cause });
    this.name = 'InVainError';
    this.mayPass = options.mayPass;
  }
}

/** The group was forgotten, or another replica may act on it by now. */
export class OperationCancelledError extends Error {
  readonly code = 'OPERATION_CANCELLED';

  constructor() {
    super('the operation was cancelled: its group is gone, or another term of leadership has begun');
    this.name = 'OperationCancelledError';
  }
}

interface Running extends Doing {
  /** Closed when the operation has ended, is cancelled, or the leader's term in which it began has ended. */
  readonly fence: Fence;
  task: string | undefined;
  /** When it had succeeded; what it has done may take a while to show. */
  doneAt: number | undefined;
  readonly shows: () => boolean;
}

/** What is done shows within this time; else it has been undone, and is done again. */
const SHOWN_MS = 30_000;
/** What takes a machine down each time is not tried soon again: less so where nothing says that it may pass. */
const IN_VAIN: Pauses = { firstMs: 10 * 60_000, longestMs: 10 * 60_000 };
const IN_VAIN_BY_CHANCE: Pauses = { firstMs: 30_000, longestMs: 10 * 60_000 };
/** A task that takes longer (a question that nobody answers, a datastore that is gone) keeps nobody else waiting. */
const TURN_MS = 10 * 60_000;

/**
 * What is under way for each group. A reconcile begins operations and does not wait for their end; that wakes the group.
 *
 * Guarantees: one operation a slot at a time, also until what it has done shows. One that has failed is not tried again
 * before a while that grows with each failure; nor is a machine switched on that goes off again and again. An operation
 * of an ended term, or of a group that is forgotten, is cancelled and sends nothing any more.
 */
export class Operations {
  readonly #options: OperationsOptions;
  readonly #groups = new Map<string, Map<number, Running>>();
  /** Slots whose machines are proved to be gone. */
  readonly #gone = new Map<string, Set<number>>();
  readonly #rests: Rests;

  constructor(options: OperationsOptions) {
    this.#options = options;
    this.#rests = new Rests(options.world);
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
    return this.#rests.slots(group, 'slot');
  }

  /** Slots whose machines were taken down in vain; they are left as they are for a while. */
  inVainOf(group: string): ReadonlySet<number> {
    return this.#rests.slots(group, 'changing');
  }

  /**
   * Slots whose machines are proved to be gone: destroyed here, or not found by a lookup of their UUIDs.
   * @param shown slots whose machines the inventory shows; an earlier proof says nothing about these
   */
  goneOf(group: string, shown: Iterable<number>): ReadonlySet<number> {
    const gone = this.#gone.get(group) ?? new Set<number>();
    for (const slot of shown) gone.delete(slot);
    return gone;
  }

  /** Whether clones could not be made, and none is tried for a while. */
  isCloningAtRest(group: string): boolean {
    return this.#rests.isAtRest(group, 'clones');
  }

  /** Whether the template could not be found, and is not looked for for a while. */
  isLookingAtRest(group: string): boolean {
    return this.#rests.isAtRest(group, 'template');
  }

  /** All operations that failed and have not succeeded since; the newest cause last. */
  failuresOf(group: string): readonly Failure[] {
    return this.#rests.failuresOf(group);
  }

  /** When, on the monotonic clock, the group is to be looked at again, though nothing may happen until then. */
  nextLookAt(group: string): number | undefined {
    const running = [...(this.#groups.get(group)?.values() ?? [])];
    const times = [
      ...this.#rests.ends(group),
      ...running.flatMap(({ doneAt }) => (doneAt === undefined ? [] : doneAt + SHOWN_MS + 1)),
    ].filter((time) => time > this.#now);
    return times.length === 0 ? undefined : Math.min(...times);
  }

  /**
   * @param term the fence of the reconcile that begins it
   * @returns once vCenter is at it, or it has ended
   */
  begin(group: string, slot: number, operation: Operation, turn: Permit, term: Fence): Promise<void> {
    const { what, words, run, shows, provesGone } = operation;
    const fence = term.nested();
    const running: Running = { what, shows, fence, task: undefined, doneAt: undefined };
    const log = new OperationLog(this.#options, group, operation);
    const slots = this.#groups.get(group) ?? new Map<number, Running>();
    this.#groups.set(group, slots.set(slot, running));
    this.#gone.get(group)?.delete(slot);
    const begun = Promise.withResolvers<void>();
    const at = (task: Ref<'Task'>) => {
      running.task = task.value;
      log.started(task.value);
      begun.resolve();
    };
    const late = this.#options.world.after(TURN_MS, () => turn.release());
    const end = () => {
      const isCancelled = !fence.isOpen;
      late.cancel();
      fence.close();
      running.task = undefined;
      turn.release();
      begun.resolve();
      // Nothing can be done in an ended term, and trying at once, again and again, would starve the timer that ends it.
      if (!isCancelled) this.#options.wake(group);
    };
    const changing: Resting = { of: 'changing', slot };
    const its: Resting = { of: 'slot', slot };
    const resting: Resting = what === 'clone' ? { of: 'clones' } : its;
    const isChange = what === 'resize' || what === 'reconfigure';
    const concerned = isChange ? [its, changing] : [its, resting];
    for (const each of concerned) this.#rests.trying(group, each, true);
    // How a cancelled operation ended says nothing about vCenter or the machine.
    const counts = () => fence.isOpen && this.#groups.get(group)?.get(slot) === running;
    run(at, { signal: fence.signal, assertLeader: () => fence.assertOpen() }).then(
      () => {
        running.doneAt = this.#now;
        log.succeeded();
        if (counts()) {
          if (provesGone?.()) this.#addGone(group, slot);
          if (what === 'powerOn') this.#rests.begin(group, its, undefined);
          else for (const each of concerned) this.#rests.end(group, each);
        }
        end();
      },
      (error: unknown) => {
        if (counts()) {
          for (const each of concerned) this.#rests.trying(group, each, false);
          // What is wrong with one of them alone keeps none of the others from being made.
          const about = error instanceof GroupError ? its : resting;
          if (!(error instanceof InVainError))
            log.failed(error, this.#rests.begin(group, about, { error, words }));
          else {
            const { cause, mayPass } = error;
            const pauses = mayPass ? IN_VAIN_BY_CHANCE : IN_VAIN;
            log.failed(cause, this.#rests.begin(group, changing, { error: cause, words }, pauses));
          }
        }
        slots.delete(slot);
        end();
      },
    );
    return begun.promise;
  }

  /** The group could not be observed, or its deletion not finished. @returns after how many milliseconds to retry */
  blocked(group: string, failed: Failed): number {
    return this.#rests.begin(group, { of: 'group' }, failed);
  }

  /** The group was observed. */
  unblocked(group: string): void {
    this.#rests.end(group, { of: 'group' });
  }

  /** Clones could not even be begun. */
  cannotClone(group: string, failed: Failed): void {
    this.#rests.begin(group, { of: 'clones' }, failed);
  }

  /** The template was looked for. @param failed how that went wrong */
  looked(group: string, failed?: Failed): void {
    if (failed === undefined) this.#rests.end(group, { of: 'template' });
    else this.#rests.begin(group, { of: 'template' }, failed);
  }

  /**
   * Something else is wanted now: what went wrong before says nothing about it.
   * @param isSizeSame machines that were taken down in vain for it are not taken down again
   */
  forgive(group: string, { isSizeSame }: { readonly isSizeSame: boolean }): void {
    this.#rests.forget(group, isSizeSame ? 'changing' : undefined);
  }

  /** Cancels all operations and forgets all groups. */
  clear(): void {
    for (const group of this.#groups.keys()) this.#cancel(group);
    this.#groups.clear();
    this.#gone.clear();
    this.#rests.clear();
  }

  /** Cancels the operations of a group that is gone, and forgets it. */
  forget(group: string): void {
    this.#cancel(group);
    this.#groups.delete(group);
    this.#gone.delete(group);
    this.#rests.forget(group);
  }

  #addGone(group: string, slot: number): void {
    this.#gone.set(group, (this.#gone.get(group) ?? new Set<number>()).add(slot));
  }

  #cancel(group: string): void {
    for (const { fence } of this.#groups.get(group)?.values() ?? [])
      fence.close(new OperationCancelledError());
  }

  get #now(): number {
    return this.#options.world.monotonic();
  }
}
