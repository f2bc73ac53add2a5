import { Fence, jittered, wait } from '@vmwright/core';
import { LeaderElection, type OnLeading } from '../election/leader-election.ts';
import { type ElectionTimings, timingsOf } from '../election/options.ts';
import { momentOf, Term } from '../election/term.ts';
import { refOf } from '../kind/object.ts';
import { shardOf } from './assignment.ts';
import { NotOwningError, ShardLeavingError, ShardsLostError } from './errors.ts';
import { HeldShards, type Work } from './held-shards.ts';
import { LeaseStore, type Snapshot } from './lease-store.ts';
import { MemberObservations } from './member-observations.ts';
import type { ShardingOptions, ShardOwnership } from './options.ts';
import { type Plan, planOf } from './plan.ts';

/** Period in which this replica is a member. The held shards are lost when the period ends. */
interface Membership {
  readonly heldShards: HeldShards;
  /**
   * Term that ends when the last read of the shard map is too old, or when the map no longer assigns the held shards to
   * this member. Its fence is open while this member may act on the held shards.
   */
  readonly term: Term;
  /** Number of shards in the shard map. */
  shards: number;
}

const DEFAULT_SHARDS = 256;

/** Fraction of the usual pause after which a member continues if it has more to do, such as after a write conflict. */
const SOON = 0.1;

/**
 * Divides the namespaces among all replicas, so that at most one replica acts on a namespace at a time.
 *
 * Flow: each replica is a member while it holds a Lease of its own, like a leader. Namespaces are hashed into a fixed
 * number of shards. `assign` computes from the members which of them should own a shard. The shard map stores which
 * member owns it now. At each sync (one list request), a member does the following:
 * - It starts to release the shards that another member should own.
 * - It removes itself as the owner of released shards without work in progress.
 * - It claims free shards that it should own.
 *
 * When idle, each member makes one renewal and one list request per `retryMs` and no other writes.
 *
 * Guarantees:
 * - A member holds a shard only after it has written itself into the shard map as the owner. The write succeeds only if
 *   the map has not changed since the member read it.
 * - A member claims a shard of another member only after that member has released its Lease, or after that Lease was
 *   observed unchanged for its whole duration. The duration is measured on the local monotonic clock.
 * - A member stops acting when `renewMs` have passed since the start of its last successful renewal, or since the start
 *   of its last sync that found the expected shard map. Then all signals abort, `owns` and `holds` return false, and
 *   `begin` returns undefined. This needs no connection to the API server.
 * - If a user deletes or edits the shard map, or deletes the Lease of a member, the affected owners stop by themselves.
 *   Their shards are assigned again only after enough time for these owners to stop.
 * - On a stop, all work ends before the Lease is released. The other members take over within about `retryMs`.
 *
 * Assumptions:
 * - those of `LeaderElection`
 * - Only members write to the Leases of members.
 * - The Lease that stores the shard map is not restored from a backup, because the checksum of an old map is still
 *   valid.
 * - The shard map and the Lease of a member are not deleted at the same time.
 *
 * Errors: as for `LeaderElection`.
 */
export class Sharding implements ShardOwnership {
  /** Name of this member's Lease, which also identifies it in the shard map. */
  readonly member: string;
  readonly #options: ShardingOptions;
  readonly #times: ElectionTimings;
  readonly #store: LeaseStore;
  readonly #election: LeaderElection;
  readonly #observations: MemberObservations;
  readonly #listeners: ((isGained: (key: string) => boolean) => void)[] = [];
  #membership: Membership | undefined;
  #endPause: (() => void) | undefined;
  /** Whether a shard was released after the last sync planned its write: the shard map must be written again soon. */
  #syncRequested = false;
  #lastReport = '';

  constructor(options: ShardingOptions) {
    const { world, client, namespace, name, identity, observer, leaseMs, renewMs, retryMs } = options;
    const lease = { namespace, name: `${name}-${world.uuid()}` };
    const times = { ...(leaseMs && { leaseMs }), ...(renewMs && { renewMs }), ...(retryMs && { retryMs }) };
    this.#options = options;
    this.#times = timingsOf({ lease, ...times });
    this.member = lease.name;
    this.#store = new LeaseStore({ clock: world, client, namespace, name, callMs: this.#times.callMs });
    this.#observations = new MemberObservations({ self: this.member, leaseMs: this.#times.leaseMs });
    this.#election = new LeaderElection({
      world,
      client,
      lease,
      identity,
      ...times,
      labels: this.#store.labels,
      whenDeleted: 'lose',
      observer: { leading: () => undefined, failed: (error) => observer?.failed?.(error) },
    });
  }

  /** Maximum time that work in progress may take to end after the shards are lost. */
  get slackMs(): number {
    return this.#election.slackMs;
  }

  /** Returns whether this replica may act on its shards at this moment. */
  isMember(): boolean {
    return this.#current !== undefined;
  }

  get held(): ReadonlySet<number> {
    return this.#current?.heldShards.held ?? new Set();
  }

  shardOf(key: string): number {
    const { shards = DEFAULT_SHARDS } = this.#options;
    return shardOf(refOf(key).namespace ?? '', this.#membership?.shards ?? shards);
  }

  owns(key: string): boolean {
    const membership = this.#current;
    return membership?.heldShards.isOpen(shardIn(membership, key)) ?? false;
  }

  begin(key: string): Work | undefined {
    const membership = this.#current;
    return membership?.heldShards.begin(shardIn(membership, key));
  }

  /** Returns whether work in progress on this object may continue, even while its shard is being released. */
  holds(key: string): boolean {
    const membership = this.#current;
    return membership?.heldShards.holds(shardIn(membership, key)) ?? false;
  }

  fence(key: string): Fence {
    const membership = this.#current;
    const held = membership?.heldShards.fence(shardIn(membership, key));
    if (held !== undefined) return held;
    const fence = new Fence({ error: () => new NotOwningError(key, this.#options.name) });
    fence.close();
    return fence;
  }

  onGained(listener: (isGained: (key: string) => boolean) => void): void {
    this.#listeners.push(listener);
  }

  /**
   * Takes part in the sharding until `signal` aborts or `act` returns by itself. Resolves when no shard is held and the
   * Lease is released.
   * @param act works on the owned objects until its first signal aborts; called once per membership. Its second signal
   *   aborts when the shards are lost, even while `act` is stopping
   */
  async run(signal: AbortSignal, act: OnLeading): Promise<void> {
    let ended = false;
    while (!ended && !signal.aborted) {
      // If the shard map is missing, the first sync writes a blank map. If no member holds its Lease, so that none
      // acts on a shard, the second sync writes a map in which no shard has an owner.
      for (let attempt = 0; attempt < 2; attempt++)
        await this.#reportErrors(signal, () => this.#sync(undefined, signal));
      await this.#election.run(signal, async (leading, leadershipLost) => {
        ended = await this.#runMembership(leading, leadershipLost, act);
      });
    }
  }

  /** Membership in which this replica may act at this moment. */
  get #current(): Membership | undefined {
    return this.#membership?.term.fence.isOpen ? this.#membership : undefined;
  }

  /** @returns whether `act` has returned by itself */
  async #runMembership(leading: AbortSignal, leadershipLost: AbortSignal, act: OnLeading): Promise<boolean> {
    const { world, name } = this.#options;
    const { renewMs } = this.#times;
    const term = new Term({
      clock: world,
      lease: this.#store.shardMapName,
      since: momentOf(world),
      renewMs,
      within: this.#election.fence,
    });
    const heldShards = new HeldShards(
      (shard) => new Fence({ within: term.fence, error: () => new NotOwningError(`shard ${shard}`, name) }),
    );
    const membership: Membership = { heldShards, term, shards: 1 };
    const acting = new AbortController();
    const shardsLost = new AbortController();
    const stop = (reason: unknown) => {
      acting.abort(reason);
      membership.heldShards.stop(reason);
      this.#report(undefined);
    };
    const lose = (cause: unknown) => {
      const reason = new ShardsLostError(name, { cause });
      shardsLost.abort(reason);
      term.end();
      stop(reason);
    };
    const onLeadingAborted = () => (this.#election.isLeading() ? stop(leading.reason) : lose(leading.reason));
    const onLeadershipLost = () => lose(leadershipLost.reason);
    leading.addEventListener('abort', onLeadingAborted, { once: true });
    leadershipLost.addEventListener('abort', onLeadershipLost, { once: true });
    term.leadershipLost.addEventListener('abort', () => lose(term.leadershipLost.reason), { once: true });
    if (leading.aborted) onLeadingAborted();
    this.#membership = membership;
    const done = new AbortController();
    const syncing = this.#syncUntil(membership, acting.signal, done.signal);
    try {
      await act(acting.signal, shardsLost.signal);
      return !acting.signal.aborted;
    } catch (error) {
      if (!acting.signal.aborted || error !== acting.signal.reason) throw error;
      return false;
    } finally {
      // Syncs extend the term until here, because work that is ending may still have to write.
      done.abort();
      await syncing;
      leading.removeEventListener('abort', onLeadingAborted);
      leadershipLost.removeEventListener('abort', onLeadershipLost);
      term.end();
      this.#membership = undefined;
    }
  }

  async #syncUntil(membership: Membership, acting: AbortSignal, done: AbortSignal): Promise<void> {
    while (!done.aborted) {
      membership.term.check(); // ends an expired term: after a suspension of the process, its timer may be late
      const settled = await this.#reportErrors(done, () => this.#sync(membership, done, acting));
      await this.#pause(settled ?? true, done);
    }
  }

  /**
   * Reads the Leases, then releases and claims shards.
   * @param membership undefined if this replica is not a member yet
   * @returns false if the write conflicted: the next sync should then follow soon
   */
  async #sync(membership: Membership | undefined, done: AbortSignal, acting = done): Promise<boolean> {
    const { world } = this.#options;
    this.#syncRequested = false;
    const since = momentOf(world);
    const snapshot = await this.#store.read(done);
    this.#observations.observe(snapshot, world.monotonic());
    if (membership !== undefined) {
      if (!this.#matchesShardMap(membership, snapshot)) {
        membership.term.lose('the shard map no longer assigns the held shards to this member');
        return true;
      }
      membership.term.extend(since);
    }
    if (acting.aborted) return true;
    if (membership !== undefined) this.#release(membership, this.#plan(snapshot, membership).release);
    this.#syncRequested = false;
    // Plan again: a shard without work is released immediately and can be given away in the same write.
    const { write, claims } = this.#plan(snapshot, membership);
    let settled = true;
    if (write !== undefined) {
      settled = await this.#store.write(snapshot.lease, write, done);
      if (settled && membership !== undefined && write !== 'blank')
        this.#gain(membership, claims, write.length);
    }
    if (membership !== undefined) {
      if (!acting.aborted) this.#report(membership);
      await this.#removeStaleLeases(snapshot, done);
    }
    return settled;
  }

  #plan({ shardMap }: Snapshot, membership: Membership | undefined): Plan {
    const { live, blankIsSafe } = this.#observations;
    const self = membership === undefined ? undefined : this.member;
    return planOf({
      self,
      shardMap,
      live: self === undefined || live.includes(self) ? live : [...live, self],
      isGone: (member) => this.#observations.isGone(member),
      blankIsSafe,
      held: membership?.heldShards.held ?? new Set(),
      shards: this.#options.shards ?? DEFAULT_SHARDS,
    });
  }

  /** Returns whether the shard map assigns all held shards to this member. */
  #matchesShardMap({ heldShards, shards }: Membership, { shardMap }: Snapshot): boolean {
    if (heldShards.size === 0) return true;
    if (typeof shardMap === 'string' || shardMap.length !== shards) return false;
    return heldShards.held.values().every((shard) => shardMap[shard] === this.member);
  }

  #gain(membership: Membership, claims: readonly number[], shards: number): void {
    membership.shards = shards;
    membership.heldShards.gain(claims);
    if (claims.length === 0) return;
    const gained = new Set(claims);
    for (const listener of this.#listeners) listener((key) => gained.has(shardIn(membership, key)));
  }

  #release({ heldShards }: Membership, shards: readonly number[]): void {
    for (const shard of shards) {
      const reason = new ShardLeavingError(shard, this.#options.name);
      heldShards.release(shard, reason, () => this.#requestSync());
    }
  }

  /** Deletes the Leases of members that are gone and own nothing. Only the live member with the lowest name does so. */
  async #removeStaleLeases({ shardMap, members }: Snapshot, signal: AbortSignal): Promise<void> {
    if (typeof shardMap === 'string') return;
    const { live } = this.#observations;
    if (live.some((name) => name < this.member)) return;
    for (const [name, lease] of members)
      if (name !== this.member && this.#observations.isGone(name) && !shardMap.includes(name))
        await this.#store.remove(lease, signal);
  }

  /**
   * Waits until the next sync. The wait is shorter than usual if a Lease may expire earlier, a shard was released, or a
   * write conflicted.
   */
  async #pause(settled: boolean, done: AbortSignal): Promise<void> {
    const { world } = this.#options;
    const usual = jittered(world, this.#times.retryMs, 0.25);
    const nextExpiry = Math.ceil(this.#observations.nextExpiryMs ?? usual);
    const ms = this.#syncRequested || !settled ? usual * SOON : Math.min(usual, nextExpiry);
    const pause = new AbortController();
    const endPause = () => pause.abort();
    done.addEventListener('abort', endPause, { once: true });
    this.#endPause = endPause;
    if (!done.aborted) await wait(world, ms, pause.signal).catch(() => undefined);
    this.#endPause = undefined;
    done.removeEventListener('abort', endPause);
  }

  #requestSync(): void {
    this.#syncRequested = true;
    this.#endPause?.();
  }

  async #reportErrors<T>(signal: AbortSignal, call: () => Promise<T>): Promise<T | undefined> {
    try {
      return await call();
    } catch (error) {
      if (!signal.aborted) this.#options.observer?.failed?.(error);
      return undefined;
    }
  }

  /** Reports the numbers of held shards, all shards and members to the observer if they have changed. */
  #report(membership: Membership | undefined): void {
    const { heldShards, shards } = membership ?? { heldShards: undefined, shards: 0 };
    const members = membership === undefined ? 0 : this.#observations.live.length;
    const report = [heldShards?.size ?? 0, shards, members] as const;
    if (report.join() === this.#lastReport) return;
    this.#lastReport = report.join();
    this.#options.observer?.owns(...report);
  }
}

function shardIn({ shards }: Membership, key: string): number {
  return shardOf(refOf(key).namespace ?? '', shards);
}
