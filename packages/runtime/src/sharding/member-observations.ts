import { Observation } from '../election/observation.ts';
import { holderOf } from '../election/record.ts';
import type { Lease } from '../kind/builtin/lease.ts';
import type { Snapshot } from './lease-store.ts';

/** Version of an object, and the monotonic time at which this version was first observed. */
interface Observed {
  readonly version: string | undefined;
  readonly at: number;
}

/**
 * What one member has observed of the others, timed by its own monotonic clock. As in leader election, a member that
 * has not released its Lease counts as gone only after its Lease was observed unchanged for the whole lease duration
 * (see `Observation`).
 */
export class MemberObservations {
  readonly #leaseMs: number;
  readonly #self: string;
  readonly #members = new Map<string, Observation>();
  /**
   * Members that own shards in the shard map but have no Lease, because a user has deleted it. The value has the
   * version of the shard map, and the time at which the Lease was first found missing at that version.
   */
  readonly #missing = new Map<string, Observed>();
  #shardMap: Observed | undefined;
  /** Longest observed lease duration: the maximum time for which a member acts after it last read the shard map. */
  #longestMs: number;
  #othersHold = false;
  #now = 0;

  constructor(options: { readonly self: string; readonly leaseMs: number }) {
    this.#self = options.self;
    this.#leaseMs = options.leaseMs;
    this.#longestMs = options.leaseMs;
  }

  /** Records a snapshot. @param now monotonic time at which the response was received */
  observe({ shardMap, lease, members }: Snapshot, now: number): void {
    this.#now = now;
    const version = lease?.metadata.resourceVersion;
    if (this.#shardMap === undefined || this.#shardMap.version !== version)
      this.#shardMap = { version, at: now };
    for (const [name, member] of members) this.#observeMember(name, member);
    for (const name of this.#members.keys()) if (!members.has(name)) this.#members.delete(name);
    this.#othersHold = members.entries().some(([name, { spec }]) => name !== this.#self && holderOf(spec));
    const owners = new Set(typeof shardMap === 'string' ? [] : shardMap);
    for (const name of this.#missing.keys())
      if (members.has(name) || !owners.has(name)) this.#missing.delete(name);
    for (const name of owners) {
      if (name === undefined || members.has(name)) continue;
      // A member that creates its Lease again writes the shard map before it acts. So the wait until the member counts
      // as gone restarts with every new version of the map. Writes of other members restart it too, which is acceptable
      // for a Lease deleted by hand.
      if (this.#missing.get(name)?.version !== version) this.#missing.set(name, { version, at: now });
    }
  }

  /** Members that are not known to have stopped. */
  get live(): readonly string[] {
    return [...this.#members.keys()].filter((name) => !this.isGone(name));
  }

  /**
   * Returns whether it is certain that a member no longer acts: it has released its Lease, its Lease has expired, or it
   * has had no Lease for the longest observed lease duration.
   */
  isGone(name: string): boolean {
    const member = this.#members.get(name);
    if (member !== undefined) return member.freeIn(this.#now) === 0;
    const missing = this.#missing.get(name);
    return missing !== undefined && this.#now - missing.at >= this.#longestMs;
  }

  /** If the shard map is blank: whether it is certain that no member still acts according to an earlier map. */
  get blankIsSafe(): boolean {
    if (!this.#othersHold) return true;
    return this.#shardMap !== undefined && this.#now - this.#shardMap.at >= this.#longestMs;
  }

  /**
   * Milliseconds from the last snapshot to the earliest possible expiry of a Lease of another member; undefined if no
   * such Lease can still expire.
   */
  get nextExpiryMs(): number | undefined {
    const waits = [...this.#members].flatMap(([name, member]) =>
      name === this.#self ? [] : member.freeIn(this.#now),
    );
    return waits.filter((ms) => ms > 0).sort((a, b) => a - b)[0];
  }

  #observeMember(name: string, lease: Lease): void {
    const member = this.#members.get(name) ?? new Observation({ identity: '', leaseMs: this.#leaseMs });
    this.#members.set(name, member);
    member.observe(lease, this.#now);
    const { leaseDurationSeconds = 0 } = lease.spec ?? {};
    this.#longestMs = Math.max(this.#longestMs, leaseDurationSeconds * 1_000);
  }
}
