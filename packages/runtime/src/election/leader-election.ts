import { Fence, jittered, wait } from '@vmwright/core';
import type { Lease } from '../kind/builtin/lease.ts';
import { keyOf } from '../kind/object.ts';
import { NotLeadingError } from './errors.ts';
import { LeaseLock } from './lease-lock.ts';
import { Observation } from './observation.ts';
import {
  type ElectionObserver,
  type ElectionTimings,
  type LeaderElectionOptions,
  timingsOf,
} from './options.ts';
import { claimRecord, holderOf, releaseRecord } from './record.ts';
import { type Moment, momentOf, Term } from './term.ts';

/** The work of a leader. `leading` aborts when the work must stop for any reason, `lost` only if leadership is lost. */
export type OnLeading = (leading: AbortSignal, lost: AbortSignal) => Promise<void>;

/** Maximum number of attempts to write the lease. After a conflict, the next attempt follows without a delay. */
const CONFLICT_ATTEMPTS = 2;

/**
 * Leader election with a Lease in the API server: at most one of several processes acts at a time.
 *
 * Flow: `run` waits until the lease is free, acquires it and calls `onLeading` with a signal. It renews the lease until
 * `onLeading` has ended. If no renewal succeeds in time, the signal aborts. `run` then waits for `onLeading` to end and
 * competes for the lease again. The process and its caches keep running.
 *
 * Guarantees:
 * - A candidate takes over the lease of another process only after it has seen the record unchanged for the record's
 *   whole lease duration. It measures this duration on its own monotonic clock. Clocks of different machines are never
 *   compared, because they may differ by hours and jump.
 * - A process never overwrites a record that it has not read, because every write has the resource version as a
 *   precondition. So only one of several candidates acquires the lease. If the response to a write is lost, the process
 *   reads the lease again before it decides anything.
 * - `renewMs` after the start of the last successful renewal, `isLeading` becomes false and the leader's signal aborts.
 *   This needs no connection to the API server. Another candidate can start `leaseMs - renewMs` later at the earliest.
 * - The lease is renewed until `onLeading` has ended, even during a graceful shutdown. Only then is it released. The
 *   next leader starts within about `retryMs`.
 *
 * Assumptions:
 * - A process may be paused at any point, and the signal may then abort late. Code that writes outside the API server
 *   must therefore check the term's `fence` right before each write, not only the signal.
 * - A request that was sent before a pause may arrive after the term has ended. Only the receiver can guard against
 *   that, for example with resource versions or with ids that are fixed in advance.
 * - After the signal of `onLeading` aborts, operations in flight end within `leaseMs - renewMs`. A process that cannot
 *   ensure that should exit.
 * - The speeds of two machines' clocks differ by less than the factor `leaseMs / renewMs`. While a machine sleeps, its
 *   wall clock is not set back by the duration of the sleep or more.
 * - The Lease is not deleted while a leader acts and a new process starts. The new process has not seen the record, so
 *   it would lead immediately. (Other candidates wait until the record that they have seen expires. Before that, the
 *   leader creates the Lease again.)
 *
 * Errors: if the API server rejects a call or does not respond, the error is reported to the observer and the call is
 * retried indefinitely. If `onLeading` fails with an error other than the reason of its signal, `run` rejects with that
 * error and leaves the lease to expire.
 */
export class LeaderElection {
  /** Holder identity in the lease. */
  readonly identity: string;
  readonly #options: LeaderElectionOptions;
  readonly #timings: ElectionTimings;
  readonly #observer: ElectionObserver | undefined;
  readonly #lock: LeaseLock;
  readonly #observation: Observation;
  /** The fence to return while this process does not lead. */
  readonly #closed: Fence;
  #term: Term | undefined;
  #sinceVersion = 0;
  /** Resource version that the lease had when `observe` found it released; undefined if it was not released. */
  #releasedVersion: string | undefined;
  #wasReleased = false;
  #holder: string | undefined;
  /** Whether the lease may name this process as its holder. */
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

  /** Milliseconds within which in-flight operations must end after leadership was lost. */
  get slackMs(): number {
    return this.#timings.leaseMs - this.#timings.renewMs;
  }

  /**
   * Resource version at which the lease was last acquired. Objects with a lower version were written earlier, possibly
   * by another leader. The caches may have received them only after the term began.
   */
  get sinceVersion(): number {
    return this.#sinceVersion;
  }

  /**
   * Whether no other process has led since `observe`: `observe` found the lease released, and this process was the
   * first to acquire it afterwards. False if that is not known, for example because the lease did not exist.
   */
  get wasReleased(): boolean {
    return this.#wasReleased;
  }

  /** Reads the lease once, before `run`; see `wasReleased`. A failure is reported to the observer and not thrown. */
  async observe(signal: AbortSignal): Promise<void> {
    await this.#attempt(signal, async () => {
      const lease = await this.#lock.read(signal);
      this.#observe(lease);
      if (lease !== undefined && holderOf(lease.spec) === undefined)
        this.#releasedVersion = lease.metadata.resourceVersion;
    });
  }

  /** Whether this process leads at this moment, by the clock. */
  isLeading(): boolean {
    return this.#term?.holds ?? false;
  }

  /**
   * Fence of the current term; a closed fence if there is no term. Work must keep the fence of the term in which it
   * began. In a later term its decisions may be wrong, because another replica may have led in between.
   */
  get fence(): Fence {
    return this.#term?.fence ?? this.#closed;
  }

  /**
   * Competes for the lease and calls `onLeading` whenever it holds the lease, until `signal` aborts or `onLeading`
   * returns by itself. Resolves when this process no longer leads and has tried to release the lease.
   * @param onLeading acts until its first signal aborts, with a `LeadershipLostError` or with the reason of `signal`.
   *   Its second signal aborts when leadership is lost, which can also happen during a graceful shutdown.
   */
  async run(signal: AbortSignal, onLeading: OnLeading): Promise<void> {
    if (this.#running) throw new Error(`the election with lease ${this.#name} is already running`);
    this.#running = true;
    this.#reportLeading(false);
    try {
      for (let again = true; again && !signal.aborted; ) {
        const term = await this.#acquire(signal);
        again = term !== undefined && (await this.#lead(term, signal, onLeading));
        // Not reached if `onLeading` failed: its operations may still be in flight, so the lease is left to expire.
        await this.#release();
      }
    } finally {
      this.#running = false;
    }
  }

  get #name(): string {
    return keyOf(this.#options.lease);
  }

  /** Waits for the lease and acquires it. @returns undefined once `signal` has aborted. */
  async #acquire(signal: AbortSignal): Promise<Term | undefined> {
    const { world } = this.#options;
    while (!signal.aborted) {
      const term = await this.#attempt(signal, () => this.#tryAcquire(signal));
      if (term !== undefined) return term;
      // Try again when the lease expires, if that is before the retry delay ends. If the lease is free already, the
      // last attempt failed, and the full delay applies.
      const delay = this.#retryDelay();
      const freeIn = Math.ceil(this.#observation.freeIn(world.monotonic()));
      await wait(world, freeIn > 0 ? Math.min(delay, freeIn) : delay, signal).catch(() => undefined);
    }
    return undefined;
  }

  async #tryAcquire(signal: AbortSignal): Promise<Term | undefined> {
    const { world } = this.#options;
    const lease = await this.#lock.read(signal);
    this.#observe(lease);
    if (this.#observation.freeIn(world.monotonic()) > 0) return undefined;
    // The signal is not passed: the API server might execute an aborted request after `#release`. Other candidates
    // would then wait until the lease expires.
    const since = await this.#claim(lease);
    if (since === undefined) return undefined;
    this.#sinceVersion = this.#lock.version;
    this.#wasReleased =
      this.#releasedVersion !== undefined && this.#releasedVersion === lease?.metadata.resourceVersion;
    const term = new Term({ clock: world, lease: this.#name, since, renewMs: this.#timings.renewMs });
    if (term.holds) return term;
    term.end(); // the process was paused too long between the request and its response
    return undefined;
  }

  /** Leads for one term. @returns whether to compete again */
  async #lead(term: Term, signal: AbortSignal, onLeading: OnLeading): Promise<boolean> {
    if (signal.aborted) {
      term.end();
      return false;
    }
    const leading = new AbortController();
    const renewing = new AbortController();
    const stop = () => leading.abort(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    term.leadershipLost.addEventListener('abort', () => {
      this.#reportLeading(false);
      leading.abort(term.leadershipLost.reason);
      renewing.abort(term.leadershipLost.reason);
    });
    this.#term = term;
    this.#reportLeading(true);
    const renewals = this.#renewUntilAborted(term, renewing.signal);
    try {
      await onLeading(leading.signal, term.leadershipLost);
    } catch (error) {
      if (!leading.signal.aborted || error !== leading.signal.reason) throw error;
    } finally {
      // Renewals end only here, so that no other candidate starts before the work has ended.
      signal.removeEventListener('abort', stop);
      renewing.abort();
      await renewals;
      if (!term.leadershipLost.aborted) this.#reportLeading(false);
      term.end();
      this.#term = undefined;
    }
    return term.leadershipLost.aborted;
  }

  /** Renews the lease until the signal aborts. */
  async #renewUntilAborted(term: Term, signal: AbortSignal): Promise<void> {
    const { world } = this.#options;
    let delay = this.#retryDelay();
    while (!signal.aborted) {
      await wait(world, delay, signal).catch(() => undefined);
      term.check(); // after a pause of the process, this timer may fire before the timer that ends the term
      if (signal.aborted) return;
      const started = world.monotonic();
      await this.#attempt(signal, () => this.#renew(term, signal));
      // The delay counts from the start of the last attempt: after a slow attempt the next one follows immediately.
      delay = Math.max(this.#retryDelay() - (world.monotonic() - started), 0);
    }
  }

  async #renew(term: Term, signal: AbortSignal): Promise<void> {
    for (let round = 0; round < CONFLICT_ATTEMPTS; round++) {
      const lease = await this.#lock.current(signal);
      this.#observe(lease);
      if (lease !== undefined && holderOf(lease.spec) !== this.identity) {
        term.lose(`${holderOf(lease.spec) ?? 'another writer'} has overwritten the lease`);
        return;
      }
      if (lease === undefined && this.#options.whenDeleted === 'lose') {
        term.lose('the lease was deleted');
        return;
      }
      const since = await this.#claim(lease, signal);
      if (since !== undefined) {
        term.extend(since);
        return;
      }
    }
  }

  /**
   * Writes a record that claims the lease.
   * @returns the time right before the request was sent; undefined if another write came first
   */
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

  /** Releases the lease if this process may hold it. Stops at the first call that fails: the lease then expires. */
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

  /** Returns a delay with jitter, so that candidates do not send their requests at the same time. */
  #retryDelay(): number {
    return jittered(this.#options.world, this.#timings.retryMs, 0.25);
  }
}
