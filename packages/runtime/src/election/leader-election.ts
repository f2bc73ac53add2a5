import { Fence, jittered, wait } from '@vmwright/core';
import type { Lease } from '../kind/builtin/lease.ts';
import { keyOf } from '../kind/object.ts';
import { NotLeadingError } from './errors.ts';
import { LeaseLock } from './lease-lock.ts';
import { Observation } from './observation.ts';
import { type ElectionObserver, type LeaderElectionOptions, type ElectionTimings, timingsOf } from './options.ts';
import { claimRecord, holderOf, releaseRecord } from './record.ts';
import { type Moment, momentOf, Term } from './term.ts';

/** Acts as the leader. */
export type OnLeading = (leading: AbortSignal, lost: AbortSignal) => Promise<void>;

/** How often a write over a record that has changed meanwhile is tried anew at once. */
const CONFLICT_ATTEMPTS = 2;

/**
 * Lets one of several processes act at a time, by a Lease in the API server.
 *
 * Flow: `run` stands by until the lease is free, takes it and calls `onLeading` with a signal, renewing the lease until
 * `onLeading` has ended. A leader that cannot renew in time aborts the signal, waits for `onLeading` to end and stands
 * by again, all else in the process still warm.
 *
 * Guarantees:
 * - Before a candidate takes a lease that names another, it has itself seen the record unchanged for the record's whole
 *   duration on its own monotonic clock. Clocks of different machines are never compared: they may be hours apart, and
 *   jump.
 * - No write goes over a record that its writer has not seen (resource versions), so of several candidates one takes
 *   it. After a write without an answer the lease is read before anything is decided.
 * - `isLeading` is false and the leader's signal aborts `renewMs` after the start of the last successful renewal, with
 *   or without an API server, and so `leaseMs - renewMs` before another may start.
 * - The lease is renewed for as long as `onLeading` has not ended, also while it winds up after a stop; only then is it
 *   released, and the next starts within about `retryMs`.
 *
 * Assumptions:
 * - A process may be stopped or blocked at any point, and the signal's timer be late: who acts on the outside asks
 *   the term's `fence` right before, not only the signal. What was sent before a process was stopped may still arrive
 *   after; against that only the outside can guard (resource versions, ids fixed beforehand).
 * - What `onLeading` has under way when its signal aborts ends within `leaseMs - renewMs`. A process that cannot make
 *   sure of that should exit.
 * - The speeds of two machines' clocks differ by less than `leaseMs / renewMs`. A machine that sleeps does not have its
 *   wall clock set back by as much at the same time.
 * - Nobody deletes the Lease while a leader acts and a new process starts: to the latter it was never there. (Known
 *   candidates wait out the deleted record, and the leader creates it anew.)
 *
 * Errors: an API server that refuses or does not answer is told to the observer and tried again, without end. `run`
 * rejects with what `onLeading` throws, except with its signal's reason, and then leaves the lease to run out.
 */
export class LeaderElection {
  /** As it is in the lease. */
  readonly identity: string;
  readonly #options: LeaderElectionOptions;
  readonly #timings: ElectionTimings;
  readonly #observer: ElectionObserver | undefined;
  readonly #lock: LeaseLock;
  readonly #observation: Observation;
  /** For who does not lead. */
  readonly #closed: Fence;
  #term: Term | undefined;
  #sinceVersion = 0;
  #holder: string | undefined;
  /** Whether the lease may name us. */
  #mayHoldLease = false;
  #running = false;

  constructor(options: LeaderElectionOptions) {
    const { world, client, lease, labels, identity, observer } = options;
    this.#options = options;
    this.#timings = timingsOf(options);
    this.#observer = observer;
    this.identity = `${identity}_${world.uuid()}`;
    this.#lock = new LeaseLock({ clock: world, client, lease, labels, callMs: this.#timings.callMs });
    this.#observation = new Observation({ identity: this.identity, leaseMs: this.#timings.leaseMs });
    this.#closed = new Fence({ error: () => new NotLeadingError(this.#name) });
    this.#closed.close();
  }

  /** How long what is under way may take to end, from the moment on at which the lead is lost. */
  get slackMs(): number {
    return this.#timings.leaseMs - this.#timings.renewMs;
  }

  /**
   * The resource version with which the lead was last taken. What has a lower one happened before that: others may have
   * caused it, and our caches may have been behind when we began.
   */
  get sinceVersion(): number {
    return this.#sinceVersion;
  }

  /** Whether this one may act at this very moment, by the clock. */
  isLeading(): boolean {
    return this.#term?.holds ?? false;
  }

  /**
   * The fence of the present term, closed where there is none. Work keeps the one that it began with: in a later term,
   * what it has decided may be wrong, since another may have led in between.
   */
  get fence(): Fence {
    return this.#term?.fence ?? this.#closed;
  }

  /**
   * Stands until `signal` aborts, and leads in between. Resolves when nothing is led and the lease is released, or
   * earlier if `onLeading` ends by itself.
   * @param onLeading acts until its signal aborts; the signal's reason is a `LeadershipLostError` or that of `signal`.
   *   While it winds up after a stop, the lead may be lost on top: that is what `lost` tells.
   */
  async run(signal: AbortSignal, onLeading: OnLeading): Promise<void> {
    if (this.#running) throw new Error(`the election by lease ${this.#name} runs already`);
    this.#running = true;
    this.#reportLeading(false);
    try {
      for (let again = true; again && !signal.aborted; ) {
        const term = await this.#acquire(signal);
        again = term !== undefined && (await this.#lead(term, signal, onLeading));
        // Not when it has thrown: something of it may still be under way, so the others wait the lease out.
        await this.#release();
      }
    } finally {
      this.#running = false;
    }
  }

  get #name(): string {
    return keyOf(this.#options.lease);
  }

  /** Waits for the lease and takes it; undefined once `signal` has aborted. */
  async #acquire(signal: AbortSignal): Promise<Term | undefined> {
    const { world } = this.#options;
    while (!signal.aborted) {
      const term = await this.#attempt(signal, () => this.#tryAcquire(signal));
      if (term !== undefined) return term;
      // Awake when the lease may become free, not up to a whole pause after. What has failed waits for its pause.
      const pause = this.#retryDelay();
      const freeIn = Math.ceil(this.#observation.freeIn(world.monotonic()));
      await wait(world, freeIn > 0 ? Math.min(pause, freeIn) : pause, signal).catch(() => undefined);
    }
    return undefined;
  }

  async #tryAcquire(signal: AbortSignal): Promise<Term | undefined> {
    const { world } = this.#options;
    const lease = await this.#lock.read(signal);
    this.#observe(lease);
    if (this.#observation.freeIn(world.monotonic()) > 0) return undefined;
    // Not given up when we are asked to stop: it might be carried out all the same, and keep the others waiting.
    const since = await this.#claim(lease);
    if (since === undefined) return undefined;
    this.#sinceVersion = this.#lock.version;
    const term = new Term({ clock: world, lease: this.#name, since, renewMs: this.#timings.renewMs });
    if (term.holds) return term;
    term.end(); // the process was stopped for long between the request and its answer
    return undefined;
  }

  /** @returns whether to stand again */
  async #lead(term: Term, signal: AbortSignal, onLeading: OnLeading): Promise<boolean> {
    if (signal.aborted) {
      term.end();
      return false;
    }
    const leading = new AbortController();
    const keeping = new AbortController();
    const stop = () => leading.abort(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    term.leadershipLost.addEventListener('abort', () => {
      this.#reportLeading(false);
      leading.abort(term.leadershipLost.reason);
      keeping.abort(term.leadershipLost.reason);
    });
    this.#term = term;
    this.#reportLeading(true);
    const kept = this.#renewUntilAborted(term, keeping.signal);
    try {
      await onLeading(leading.signal, term.leadershipLost);
    } catch (error) {
      if (!leading.signal.aborted || error !== leading.signal.reason) throw error;
    } finally {
      // Only now: until its work has ended, one who winds up keeps the others from starting.
      signal.removeEventListener('abort', stop);
      keeping.abort();
      await kept;
      if (!term.leadershipLost.aborted) this.#reportLeading(false);
      term.end();
      this.#term = undefined;
    }
    return term.leadershipLost.aborted;
  }

  /** Renews the lease until told otherwise. */
  async #renewUntilAborted(term: Term, signal: AbortSignal): Promise<void> {
    const { world } = this.#options;
    let pause = this.#retryDelay();
    while (!signal.aborted) {
      await wait(world, pause, signal).catch(() => undefined);
      term.check(); // after a stop of the process this timer may come before the term's own
      if (signal.aborted) return;
      const started = world.monotonic();
      await this.#attempt(signal, () => this.#renew(term, signal));
      // From start to start: a try that has waited long for its answer is followed by the next without delay.
      pause = Math.max(this.#retryDelay() - (world.monotonic() - started), 0);
    }
  }

  async #renew(term: Term, signal: AbortSignal): Promise<void> {
    for (let round = 0; round < CONFLICT_ATTEMPTS; round++) {
      const lease = await this.#lock.current(signal);
      this.#observe(lease);
      if (lease !== undefined && holderOf(lease.spec) !== this.identity) {
        term.lose(`${holderOf(lease.spec) ?? 'somebody'} has written over it`);
        return;
      }
      if (lease === undefined && this.#options.whenDeleted === 'lose') {
        term.lose('somebody has deleted it');
        return;
      }
      const since = await this.#claim(lease, signal);
      if (since !== undefined) {
        term.extend(since);
        return;
      }
    }
  }

  /** @returns just before the request was sent, if it has succeeded */
  async #claim(lease: Lease | undefined, signal?: AbortSignal): Promise<Moment | undefined> {
    const { world } = this.#options;
    this.#mayHoldLease = true;
    const since = momentOf(world);
    const { identity } = this;
    const record = claimRecord(lease?.spec, { identity, leaseMs: this.#timings.leaseMs, now: since.wall });
    if (!(await this.#lock.write(record, signal))) return undefined;
    this.#reportHolder(identity);
    return since;
  }

  /** Empties the lease, if it may name us. Gives up at the first call that fails: then the others wait it out. */
  async #release(): Promise<void> {
    await this.#attempt(undefined, async () => {
      for (let round = 0; round < CONFLICT_ATTEMPTS && this.#mayHoldLease; round++) {
        const lease = await this.#lock.current();
        this.#observe(lease);
        if (lease?.spec === undefined || holderOf(lease.spec) !== this.identity) this.#mayHoldLease = false;
        else if (await this.#lock.write(releaseRecord(lease.spec, this.#options.world.now())))
          this.#mayHoldLease = false;
      }
    });
  }

  async #attempt<T>(signal: AbortSignal | undefined, act: () => Promise<T>): Promise<T | undefined> {
    try {
      return await act();
    } catch (error) {
      if (!signal?.aborted) this.#observer?.failed?.(error);
      return undefined;
    }
  }

  #observe(lease: Lease | undefined): void {
    this.#observation.observe(lease, this.#options.world.monotonic());
    this.#reportHolder(holderOf(lease?.spec));
  }

  #reportHolder(holder: string | undefined): void {
    if (holder === this.#holder) return;
    this.#holder = holder;
    this.#observer?.holder?.(holder);
  }

  #reportLeading(leading: boolean): void {
    this.#observer?.leading(leading, this.#options.lease.name);
  }

  /** Different for each candidate and each time, so that they do not come all at once. */
  #retryDelay(): number {
    return jittered(this.#options.world, this.#timings.retryMs, 0.25);
  }
}
