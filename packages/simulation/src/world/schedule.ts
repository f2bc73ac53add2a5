import { Agenda, type Owner, type Planned } from './agenda.ts';
import type { Choices } from './choices.ts';
import { Intruders } from './intruders.ts';

/** Steps handed to the event loop at a time: more and more of them, since those beyond the end of a run are for nothing. */
const FIRST_BATCH = 8;
const LARGEST_BATCH = 128;

export interface RunOptions {
  /** Virtual milliseconds since the beginning, after which nothing more happens. */
  readonly until: number;
  /** Asked after each event; true ends the run there. */
  readonly done?: () => boolean;
}

/**
 * Virtual time. Events happen one after the other, each with all that it causes at that instant (every promise that can
 * go on has done so) before the next; of those that are due at the same moment a choice says which goes first.
 *
 * Guarantees: the same choices give the same history. What the simulated code throws, or leaves rejected without
 * anybody to catch it when an event is over, ends the run with that error, as it would end a process.
 */
export class Schedule {
  readonly #choices: Choices;
  readonly #agenda = new Agenda();
  readonly #checks: (() => void)[] = [];
  #now = 0;
  #order = 0;
  #steps = 0;
  #failure: { readonly error: unknown } | undefined;

  constructor(choices: Choices) {
    this.#choices = choices;
  }

  /** Virtual milliseconds since the beginning. */
  get now(): number {
    return this.#now;
  }

  /** How many events have happened. */
  get steps(): number {
    return this.#steps;
  }

  /** @returns with `cancelled`, to set when it is not to happen any more */
  after(ms: number, act: () => void, owner?: Owner): Planned {
    const planned = { at: this.#now + Math.max(ms, 0), order: this.#order++, act, owner, cancelled: false };
    this.#agenda.add(planned);
    return planned;
  }

  /** Called after each event, once all that it has caused is done; what it throws ends the run. */
  check(invariant: () => void): void {
    this.#checks.push(invariant);
  }

  /** Ends the run with this error. The first one counts. */
  fail(error: unknown): void {
    this.#failure ??= { error };
  }

  /**
   * Lets things happen until the time is up, `done` says so, or nothing is left.
   * @throws what the simulated code has thrown, or a check
   */
  async run(options: RunOptions): Promise<void> {
    using _ = new Intruders((error) => this.fail(error));
    await this.#loop(options);
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  /**
   * Between two callbacks of one batch of immediates, Node drains the microtasks and tells of unhandled rejections, just
   * as between two turns of the event loop, but without asking the kernel for news. Measured on one core:
   * 0.14 µs an event; 1.4 µs with an immediate a turn, 1.2 µs through a MessageChannel, 0.3 µs by ticks (which tell of
   * rejections too late).
   */
  #loop({ until, done }: RunOptions): Promise<void> {
    return new Promise((resolve) => {
      let over = false;
      let left = 0;
      let size = FIRST_BATCH;
      const step = () => {
        left -= 1;
        if (over) return;
        this.#check();
        const next = this.#failure === undefined && !done?.() ? this.#next(until) : undefined;
        if (next === undefined) {
          over = true;
          resolve();
          return;
        }
        this.#happen(next);
        if (left === 0) batch();
      };
      const batch = () => {
        left = size;
        for (let i = 0; i < size; i++) setImmediate(step);
        size = Math.min(size * 2, LARGEST_BATCH);
      };
      batch();
    });
  }

  #check(): void {
    try {
      for (const check of this.#checks) check();
    } catch (error) {
      this.fail(error);
    }
  }

  #next(until: number): Planned | undefined {
    const first = this.#agenda.peek();
    if (first === undefined || first.at > until) {
      if (Number.isFinite(until)) this.#now = Math.max(this.#now, until);
      return undefined;
    }
    this.#agenda.take();
    if (this.#agenda.peek()?.at !== first.at) return first;
    const due = [first];
    while (this.#agenda.peek()?.at === first.at) {
      const tied = this.#agenda.take();
      if (tied !== undefined) due.push(tied);
    }
    const chosen = this.#choices.pick(due.length);
    for (const [index, planned] of due.entries()) if (index !== chosen) this.#agenda.add(planned);
    return due[chosen];
  }

  #happen({ at, act }: Planned): void {
    this.#now = at;
    this.#steps += 1;
    try {
      act();
    } catch (error) {
      this.fail(error);
    }
  }
}
