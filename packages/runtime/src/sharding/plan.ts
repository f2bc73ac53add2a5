import { assign } from './assignment.ts';
import type { Ledger, Owners } from './ledger.ts';

/** All that a member decides by. */
export interface Situation {
  /** Undefined for one that is not a member yet. */
  readonly me: string | undefined;
  readonly ledger: Ledger;
  /** Members that may be alive, this one among them. */
  readonly live: readonly string[];
  /** Whether a member certainly acts on nothing. */
  isGone(member: string): boolean;
  /** Whether certainly nobody acts by what was in a ledger that is blank by now. */
  readonly blankIsSafe: boolean;
  /** The shards that this member acts on, or has not yet ended to act on. */
  readonly held: ReadonlySet<number>;
  /** Into how many shards this member would divide the namespaces. */
  readonly shards: number;
}

export interface Plan {
  /** What to write over the ledger seen; undefined for nothing. */
  readonly write: Owners | 'blank' | undefined;
  /** Shards that are this member's once that is written. */
  readonly claims: readonly number[];
  /** Shards to stop acting on, so that they can be given to those who should own them. */
  readonly leave: readonly number[];
}

/**
 * What to do about the ledger.
 *
 * A ledger that is missing or damaged tells nothing about who acts on what. It is made blank first, which every owner
 * sees at his next look and stops at; only when all must have seen it are shards given out anew.
 */
export function planOf(situation: Situation): Plan {
  const { ledger, blankIsSafe } = situation;
  if (ledger === 'absent' || ledger === 'damaged') return { write: 'blank', claims: [], leave: [] };
  if (ledger === 'blank' && !blankIsSafe) return { write: undefined, claims: [], leave: [] };
  const owners = ledger === 'blank' || divideAnew(situation, ledger) ? unowned(situation.shards) : ledger;
  const plan = share(situation, owners);
  // Also if none of them is for us: the others wait for it.
  return owners === ledger ? plan : { ...plan, write: plan.write ?? owners };
}

/** The ledger's division goes before our own as long as somebody may act by it. */
function divideAnew({ held, me, shards, isGone }: Situation, owners: Owners): boolean {
  if (owners.length === shards || held.size > 0 || me === undefined) return false;
  return owners.every((owner) => owner === undefined || owner === me || isGone(owner));
}

function share({ me, live, held, isGone }: Situation, owners: Owners): Plan {
  if (me === undefined) return { write: undefined, claims: [], leave: [] };
  const wanted = assign(owners.length, live);
  const after = [...owners];
  const claims: number[] = [];
  const leave: number[] = [];
  let changed = false;
  for (const [shard, owner] of owners.entries()) {
    const mine = wanted[shard] === me;
    if (held.has(shard)) {
      if (!mine) leave.push(shard);
      continue;
    }
    // In the ledger as ours but not held: from before this membership, or given back by a write without an answer. It
    // has to be written once more, so that whatever was decided by the ledger as it is fails.
    const free = owner === undefined || owner === me || isGone(owner);
    if (!free || (!mine && owner !== me)) continue;
    after[shard] = mine ? me : undefined;
    if (mine) claims.push(shard);
    changed = true;
  }
  return { write: changed ? after : undefined, claims, leave };
}

function unowned(shards: number): Owners {
  return new Array<string | undefined>(shards).fill(undefined);
}
