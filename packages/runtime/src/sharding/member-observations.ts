import { Observation } from '../election/observation.ts';
import { holderOf } from '../election/record.ts';
import type { Lease } from '../kind/builtin/lease.ts';
import type { Look } from './lease-store.ts';

interface Since {
  readonly version: string | undefined;
  readonly at: number;
}

/**
 * What one member has seen of the others, and since when on its own monotonic clock: as in an election, nobody is taken
 * for dead before his lease was seen unchanged for its whole duration (see `Observation`).
 */
export class MemberObservations {
  readonly #leaseMs: number;
  readonly #me: string;
  readonly #members = new Map<string, Observation>();
  /** Owners without a lease: somebody has deleted it. */
  readonly #missing = new Map<string, Since>();
  #ledger: Since | undefined;
  /** The longest duration of a lease that was seen: how long somebody may act after his last look at the ledger. */
  #longestMs: number;
  #othersHold = false;
  #now = 0;

  constructor(options: { readonly me: string; readonly leaseMs: number }) {
    this.#me = options.me;
    this.#leaseMs = options.leaseMs;
    this.#longestMs = options.leaseMs;
  }

  /** @param now on the monotonic clock, when the answer was here */
  see({ ledger, lease, members }: Look, now: number): void {
    this.#now = now;
    const version = lease?.metadata.resourceVersion;
    if (this.#ledger === undefined || this.#ledger.version !== version) this.#ledger = { version, at: now };
    for (const [name, member] of members) this.#seeMember(name, member);
    for (const name of this.#members.keys()) if (!members.has(name)) this.#members.delete(name);
    this.#othersHold = members.entries().some(([name, { spec }]) => name !== this.#me && holderOf(spec));
    const owners = new Set(typeof ledger === 'string' ? [] : ledger);
    for (const name of this.#missing.keys())
      if (members.has(name) || !owners.has(name)) this.#missing.delete(name);
    for (const name of owners) {
      if (name === undefined || members.has(name)) continue;
      // Who takes such a lease anew writes into the ledger before he acts: then the time counts from there. Writes of
      // others make it longer than needed, which for a lease deleted by hand is well enough.
      if (this.#missing.get(name)?.version !== version) this.#missing.set(name, { version, at: now });
    }
  }

  /** Members that have, as far as can be known, not stopped. */
  get live(): readonly string[] {
    return [...this.#members.keys()].filter((name) => !this.isGone(name));
  }

  /** Whether it is certain that this member acts on nothing: it has said so, or was silent for long enough. */
  isGone(name: string): boolean {
    const member = this.#members.get(name);
    if (member !== undefined) return member.freeIn(this.#now) === 0;
    const missing = this.#missing.get(name);
    return missing !== undefined && this.#now - missing.at >= this.#longestMs;
  }

  /** Whether it is certain that nobody acts by what was in a ledger that is blank by now. */
  get blankIsSafe(): boolean {
    if (!this.#othersHold) return true;
    return this.#ledger !== undefined && this.#now - this.#ledger.at >= this.#longestMs;
  }

  /** In how many milliseconds from the last look somebody may turn out to be gone; undefined for never. */
  get nextIn(): number | undefined {
    const waits = [...this.#members].flatMap(([name, member]) =>
      name === this.#me ? [] : member.freeIn(this.#now),
    );
    return waits.filter((ms) => ms > 0).sort((a, b) => a - b)[0];
  }

  #seeMember(name: string, lease: Lease): void {
    const member = this.#members.get(name) ?? new Observation({ identity: '', leaseMs: this.#leaseMs });
    this.#members.set(name, member);
    member.observe(lease, this.#now);
    const { leaseDurationSeconds = 0 } = lease.spec ?? {};
    this.#longestMs = Math.max(this.#longestMs, leaseDurationSeconds * 1_000);
  }
}
