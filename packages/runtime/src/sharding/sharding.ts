import { Fence, jittered, wait } from '@vmwright/core';
import { LeaderElection, type OnLeading } from '../election/leader-election.ts';
import { type ElectionTimings, timingsOf } from '../election/options.ts';
import { momentOf, Term } from '../election/term.ts';
import { refOf } from '../kind/object.ts';
import { shardOf } from './assignment.ts';
import { NotOwningError, ShardLeavingError, ShardsLostError } from './errors.ts';
import { HeldShards, type Work } from './held-shards.ts';
import { LeaseStore, type Look } from './lease-store.ts';
import { MemberObservations } from './member-observations.ts';
import type { ShardingOptions, ShardOwnership } from './options.ts';
import { type Plan, planOf } from './plan.ts';

/** One time of being a member. What it holds ends with it. */
interface Life {
  readonly holdings: HeldShards;
  /** While the ledger was seen to say what we hold. */
  readonly term: Term;
  /** Open while this member may act on what it holds. */
  readonly fence: Fence;
  /** By the ledger. */
  shards: number;
}

/** As a share of the pause between two looks: before the next after a write that came second. */
const SOON = 0.1;

/**
 * Divides the namespaces among all replicas, so that each is one's at a time.
 *
 * Flow: each replica holds a lease of its own, like a leader, and is a member while it does. Namespaces fall into a
 * fixed number of shards; who should own a shard follows from who the members are (`assign`), who does own it is in one
 * ledger. At each look (one list) a member begins to leave what another should own, writes into the ledger that it is
 * free once nothing of it is under way, and claims what is free and should be its own. At rest there is one renewal
 * and one look a member every `retryMs`, and no other write.
 *
 * Guarantees:
 * - A shard is held only after an own write into the ledger, over the very version that was seen, was answered.
 * - A shard is claimed from another only when he has said that he has ended (his lease is empty), or when his lease
 *   was seen unchanged for its whole duration on our own monotonic clock.
 * - `owns`, `begin` and `holds` refuse `renewMs` after the start of the last renewal of our lease, or of the last
 *   look that found the ledger as we know it, with or without an API server; and all signals abort.
 * - When the ledger was deleted, or edited by hand, or the lease of a member was deleted: owners stop by themselves, and
 *   shards are given out anew when that time has passed.
 * - On a stop all that is under way ends first, then the lease is emptied: the others go on within about `retryMs`.
 *
 * Assumptions: those of `LeaderElection`. Nobody but members writes into the leases of members, brings back an old
 * state of the ledger together with its lease, or deletes both the ledger and a member's lease at the same time.
 *
 * Errors: as for `LeaderElection`.
 */
export class Sharding implements ShardOwnership {
  /** The name of this member's lease, which is what it is called in the ledger. */
  readonly member: string;
  readonly #options: ShardingOptions;
  readonly #times: ElectionTimings;
  readonly #book: LeaseStore;
  readonly #election: LeaderElection;
  readonly #sightings: MemberObservations;
  readonly #listeners: ((isGained: (key: string) => boolean) => void)[] = [];
  #life: Life | undefined;
  #awake: (() => void) | undefined;
  /** There is something to write since the last look. */
  #nudged = false;
  #told = '';

  constructor(options: ShardingOptions) {
    const { world, client, namespace, name, identity, observer, leaseMs, renewMs, retryMs } = options;
    const lease = { namespace, name: `${name}-${world.uuid()}` };
    const times = { ...(leaseMs && { leaseMs }), ...(renewMs && { renewMs }), ...(retryMs && { retryMs }) };
    this.#options = options;
    this.#times = timingsOf({ lease, ...times });
    this.member = lease.name;
    this.#book = new LeaseStore({ clock: world, client, namespace, name, callMs: this.#times.callMs });
    this.#sightings = new MemberObservations({ me: this.member, leaseMs: this.#times.leaseMs });
    this.#election = new LeaderElection({
      world,
      client,
      lease,
      identity,
      ...times,
      labels: this.#book.labels,
      whenDeleted: 'lose',
      observer: { leading: () => undefined, failed: (error) => observer?.failed?.(error) },
    });
  }

  /** How long what is under way may take to end, from the moment on at which shards are lost. */
  get slackMs(): number {
    return this.#election.slackMs;
  }

  /** Whether this one may act on anything at this very moment, by the clock. */
  isMember(): boolean {
    return this.#acting !== undefined;
  }

  owns(key: string): boolean {
    const life = this.#acting;
    return life?.holdings.isOpen(shardIn(life, key)) ?? false;
  }

  begin(key: string): Work | undefined {
    const life = this.#acting;
    return life?.holdings.begin(shardIn(life, key));
  }

  /** Whether work on this object may go on, at this very moment; also if it was asked to end. */
  holds(key: string): boolean {
    const life = this.#acting;
    return life?.holdings.holds(shardIn(life, key)) ?? false;
  }

  /** The fence of the time for which this member owns the object's shard, closed where it does not. */
  fence(key: string): Fence {
    const life = this.#acting;
    const held = life?.holdings.fence(shardIn(life, key));
    if (held !== undefined) return held;
    const fence = new Fence({ error: () => new NotOwningError(key, this.#options.name) });
    fence.close();
    return fence;
  }

  onGained(listener: (isGained: (key: string) => boolean) => void): void {
    this.#listeners.push(listener);
  }

  /**
   * Is a member until `signal` aborts. Resolves when nothing is held and the lease is empty, or earlier if `act` ends
   * by itself.
   * @param act works on what is owned until its signal aborts; called once for each time of being a member. As for an
   *   election, `lost` tells of what is lost while it winds up
   */
  async run(signal: AbortSignal, act: OnLeading): Promise<void> {
    let ended = false;
    while (!ended && !signal.aborted) {
      // The first of all replicas makes the ledger, which is without danger as long as nobody is a member.
      for (let round = 0; round < 2; round++)
        await this.#attempt(signal, () => this.#round(undefined, signal));
      await this.#election.run(signal, async (leading, lost) => {
        ended = await this.#live(leading, lost, act);
      });
    }
  }

  /** The life in which this member may act at this very moment, by the clock. */
  get #acting(): Life | undefined {
    return this.#life?.fence.isOpen ? this.#life : undefined;
  }

  /** @returns whether `act` has ended unasked */
  async #live(leading: AbortSignal, out: AbortSignal, act: OnLeading): Promise<boolean> {
    const { world } = this.#options;
    const { renewMs } = this.#times;
    const term = new Term({ clock: world, lease: this.#book.ledgerName, since: momentOf(world), renewMs });
    const { name } = this.#options;
    const fence = new Fence({ within: this.#election.fence, holds: () => term.holds });
    const holdings = new HeldShards(
      (shard) => new Fence({ within: fence, error: () => new NotOwningError(`shard ${shard}`, name) }),
    );
    const life: Life = { holdings, term, fence, shards: 1 };
    const acting = new AbortController();
    const losing = new AbortController();
    const stop = (reason: unknown) => {
      acting.abort(reason);
      life.holdings.stop(reason);
      this.#tell(undefined);
    };
    const lost = (cause: unknown) => {
      const reason = new ShardsLostError(name, { cause });
      losing.abort(reason);
      fence.close(reason);
      stop(reason);
    };
    const follow = () => (this.#election.isLeading() ? stop(leading.reason) : lost(leading.reason));
    const followOut = () => lost(out.reason);
    leading.addEventListener('abort', follow, { once: true });
    out.addEventListener('abort', followOut, { once: true });
    term.leadershipLost.addEventListener('abort', () => lost(term.leadershipLost.reason), { once: true });
    if (leading.aborted) follow();
    this.#life = life;
    const over = new AbortController();
    const keeping = this.#keep(life, acting.signal, over.signal);
    try {
      await act(acting.signal, losing.signal);
      return !acting.signal.aborted;
    } catch (error) {
      if (!acting.signal.aborted || error !== acting.signal.reason) throw error;
      return false;
    } finally {
      // Looks go on until here: what winds up may have to write.
      over.abort();
      await keeping;
      leading.removeEventListener('abort', follow);
      out.removeEventListener('abort', followOut);
      term.end();
      fence.close();
      this.#life = undefined;
    }
  }

  async #keep(life: Life, acting: AbortSignal, over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      life.term.check(); // after a stop of the process this may come before the term's own timer
      const settled = await this.#attempt(over, () => this.#round(life, over, acting));
      await this.#rest(settled ?? true, over);
    }
  }

  /**
   * One look at the leases, and what follows from it.
   * @param life undefined for one that is not a member yet
   * @returns false when there is more to do at once
   */
  async #round(life: Life | undefined, over: AbortSignal, acting = over): Promise<boolean> {
    const { world } = this.#options;
    this.#nudged = false;
    const since = momentOf(world);
    const look = await this.#book.look(over);
    this.#sightings.see(look, world.monotonic());
    if (life !== undefined) {
      if (!this.#agree(life, look)) {
        life.term.lose('the ledger does not say any more what this member holds');
        return true;
      }
      life.term.extend(since);
    }
    if (acting.aborted) return true;
    if (life !== undefined) this.#leave(life, this.#plan(look, life).leave);
    this.#nudged = false;
    // Again: what was left without anything under way can be given away in the same write.
    const { write, claims } = this.#plan(look, life);
    let settled = true;
    if (write !== undefined) {
      settled = await this.#book.write(look.lease, write, over);
      if (settled && life !== undefined && write !== 'blank') this.#gain(life, claims, write.length);
    }
    if (life !== undefined) {
      if (!acting.aborted) this.#tell(life);
      await this.#tidy(look, over);
    }
    return settled;
  }

  #plan({ ledger }: Look, life: Life | undefined): Plan {
    const { live, blankIsSafe } = this.#sightings;
    const me = life === undefined ? undefined : this.member;
    return planOf({
      me,
      ledger,
      live: me === undefined || live.includes(me) ? live : [...live, me],
      isGone: (member) => this.#sightings.isGone(member),
      blankIsSafe,
      held: life?.holdings.held ?? new Set(),
      shards: this.#options.shards ?? 256,
    });
  }

  /** Whether the ledger says that all we hold is ours. */
  #agree({ holdings, shards }: Life, { ledger }: Look): boolean {
    if (holdings.size === 0) return true;
    if (typeof ledger === 'string' || ledger.length !== shards) return false;
    return holdings.held.values().every((shard) => ledger[shard] === this.member);
  }

  #gain(life: Life, shards: readonly number[], of: number): void {
    life.shards = of;
    life.holdings.gain(shards);
    if (shards.length === 0) return;
    const gained = new Set(shards);
    for (const listener of this.#listeners) listener((key) => gained.has(shardIn(life, key)));
  }

  #leave({ holdings }: Life, shards: readonly number[]): void {
    for (const shard of shards) {
      const reason = new ShardLeavingError(shard, this.#options.name);
      holdings.leave(shard, reason, () => this.#nudge());
    }
  }

  /** Removes leases that mean nothing any more; one of the members does so for all. */
  async #tidy({ ledger, members }: Look, signal: AbortSignal): Promise<void> {
    if (typeof ledger === 'string') return;
    const { live } = this.#sightings;
    if (live.some((name) => name < this.member)) return;
    for (const [name, lease] of members)
      if (name !== this.member && this.#sightings.isGone(name) && !ledger.includes(name))
        await this.#book.remove(lease, signal);
  }

  /** Until the next look: sooner when somebody may turn out to be gone, or when nothing of a left shard is under way. */
  async #rest(settled: boolean, over: AbortSignal): Promise<void> {
    const { world } = this.#options;
    const pause = jittered(world, this.#times.retryMs, 0.25);
    const next = Math.ceil(this.#sightings.nextIn ?? pause);
    const ms = this.#nudged || !settled ? pause * SOON : Math.min(pause, next);
    const rest = new AbortController();
    const awake = () => rest.abort();
    over.addEventListener('abort', awake, { once: true });
    this.#awake = awake;
    if (!over.aborted) await wait(world, ms, rest.signal).catch(() => undefined);
    this.#awake = undefined;
    over.removeEventListener('abort', awake);
  }

  #nudge(): void {
    this.#nudged = true;
    this.#awake?.();
  }

  async #attempt<T>(signal: AbortSignal, act: () => Promise<T>): Promise<T | undefined> {
    try {
      return await act();
    } catch (error) {
      if (!signal.aborted) this.#options.observer?.failed?.(error);
      return undefined;
    }
  }

  #tell(life: Life | undefined): void {
    const { holdings, shards } = life ?? { holdings: undefined, shards: 0 };
    const told = [holdings?.size ?? 0, shards, life === undefined ? 0 : this.#sightings.live.length] as const;
    if (told.join() === this.#told) return;
    this.#told = told.join();
    this.#options.observer?.owns(...told);
  }
}

function shardIn({ shards }: Life, key: string): number {
  return shardOf(refOf(key).namespace ?? '', shards);
}
