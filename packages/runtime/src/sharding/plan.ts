import { assign } from './assignment.ts';
import type { Owners, ShardMap } from './shard-map.ts';

/** State from which a member plans the next change of the shard map. */
export interface PlanInput {
  /** Name of this member; undefined if this replica is not a member yet. */
  readonly self: string | undefined;
  readonly shardMap: ShardMap;
  /** Members that may be alive, including this one. */
  readonly live: readonly string[];
  /** Returns whether it is certain that a member no longer acts. */
  isGone(member: string): boolean;
  /** If the shard map is blank: whether it is certain that no member still acts according to an earlier map. */
  readonly blankIsSafe: boolean;
  /** Shards that this member holds, including those that it is releasing. */
  readonly held: ReadonlySet<number>;
  /** Number of shards that this member is configured with. */
  readonly shards: number;
}

export interface Plan {
  /** Shard map to write; undefined if no write is needed. */
  readonly write: Owners | 'blank' | undefined;
  /** Shards that this member gains if the write succeeds. */
  readonly claims: readonly number[];
  /** Shards to release, because another member should own them. */
  readonly release: readonly number[];
}

const NOTHING: Plan = { write: undefined, claims: [], release: [] };

/**
 * Plans the next change of the shard map.
 *
 * A missing or damaged shard map does not show which member acts on which shard. It is first replaced by a blank map,
 * and owners stop when they read the blank map. Shards are assigned again only after enough time for every owner to
 * stop.
 */
export function planOf(input: PlanInput): Plan {
  const { shardMap, blankIsSafe } = input;
  if (shardMap === 'absent' || shardMap === 'damaged') return { ...NOTHING, write: 'blank' };
  if (shardMap === 'blank' && !blankIsSafe) return NOTHING;
  const owners = shardMap === 'blank' || shouldReshard(input, shardMap) ? unowned(input.shards) : shardMap;
  const plan = planShards(input, owners);
  // A map without owners replaces a blank map, or a map with another number of shards. It is written even if this
  // member claims no shard, because the other members wait for that write.
  return owners === shardMap ? plan : { ...plan, write: plan.write ?? owners };
}

/** Returns whether to change the number of shards. That is safe only if no member acts according to the shard map. */
function shouldReshard({ held, self, shards, isGone }: PlanInput, owners: Owners): boolean {
  if (owners.length === shards || held.size > 0 || self === undefined) return false;
  return owners.every((owner) => owner === undefined || owner === self || isGone(owner));
}

function planShards({ self, live, held, isGone }: PlanInput, owners: Owners): Plan {
  if (self === undefined) return NOTHING;
  const desired = assign(owners.length, live);
  const next = [...owners];
  const claims: number[] = [];
  const release: number[] = [];
  let changed = false;
  for (const [shard, owner] of owners.entries()) {
    const mine = desired[shard] === self;
    if (held.has(shard)) {
      if (!mine) release.push(shard);
      continue;
    }
    // The map may name this member as the owner of a shard that it does not hold: it claimed the shard in an earlier
    // membership, or the response to its claim was lost. It must write the map again before it holds the shard. That
    // write changes the resourceVersion, so that requests still in flight with the old resourceVersion fail.
    const free = owner === undefined || owner === self || isGone(owner);
    if (!free || (!mine && owner !== self)) continue;
    next[shard] = mine ? self : undefined;
    if (mine) claims.push(shard);
    changed = true;
  }
  return { write: changed ? next : undefined, claims, release };
}

function unowned(shards: number): Owners {
  return new Array<string | undefined>(shards).fill(undefined);
}
