import { Lease } from '@vmwright/runtime';
import type { ApiServer } from '../apiserver/api-server.ts';
import { fieldAt, isJson } from '../apiserver/json.ts';
import type { StoredObject } from '../apiserver/object.ts';
import type { Simulation } from '../world/simulation.ts';
import { textAt } from './fields.ts';
import type { Replica } from './replica.ts';
import type { Violations } from './violations.ts';

/** Owners by shard; shards without an owner are missing. */
type Owners = ReadonlyMap<number, string>;

export const SHARD_MAP = 'runtime.vmwright.dev/shards';

/** A state of a member's lease. */
interface Held {
  /** Holder; empty if the lease was released or deleted. */
  readonly replica: string;
  /** Virtual time at which the lease entered this state. */
  readonly at: number;
}

/** Maximum time from listing the leases until the resulting decision is written. */
const DECIDING_MS = 10_000;

interface OwnershipParts {
  readonly simulation: Simulation;
  readonly server: ApiServer;
  readonly violations: Violations;
  /** Lease duration. A member counts as alive for this time after its last renewal. */
  readonly leaseMs: number;
}

/**
 * Checks two properties of sharding:
 * - When a replica sends a write for an object, the replica owns the object's namespace according to the stored shard
 *   map. While the shard map is missing or broken, writes are not checked, because the last known owners may continue
 *   for some time.
 * - A shard is taken only from a member that is gone: its lease has no holder, or was not renewed for the whole lease
 *   duration.
 * @param shardOf expected shard of each namespace, which must be the same in every version of the runtime
 * @returns function that must be called when a replica sends a write
 */
export function checkOwnership(
  { simulation, server, violations, leaseMs }: OwnershipParts,
  name: string,
  shardOf: Readonly<Record<string, number>>,
) {
  /**
   * Last known process of each member, by the member's name in the shard map. The entry of a member remains after the
   * member's lease is deleted.
   */
  const replicas = new Map<string, string>();
  /** States of each lease in chronological order. */
  const members = new Map<string, Held[]>();
  let owners: Owners | undefined;
  const onShardMap = (now: Owners | undefined) => {
    for (const [shard, owner] of (now && owners) ?? []) {
      const next = now?.get(shard);
      const states = members.get(owner);
      if (next === undefined || next === owner || states === undefined) continue;
      if (!wasGone(states, simulation.schedule.now, leaseMs))
        violations.add(
          'shards are taken only from members that are gone',
          `${replicas.get(next)} takes shard ${shard} from ${replicas.get(owner)}, which has renewed its lease in time`,
        );
    }
    owners = now;
  };
  server.listen(({ resource, after, before }) => {
    const lease = (after ?? before)?.object;
    if (resource.kind.plural !== Lease.plural || lease === undefined) return;
    if (lease.metadata.name === `${name}-shards`) {
      onShardMap(after && ownersIn(after.object));
      return;
    }
    const [replica = ''] = (textAt(lease, 'spec', 'holderIdentity') ?? '').split('_');
    if (replica !== '') replicas.set(lease.metadata.name, replica);
    const states = members.get(lease.metadata.name) ?? [];
    members.set(lease.metadata.name, states);
    states.push({ replica: after === undefined ? '' : replica, at: simulation.schedule.now });
  });
  return (replica: Replica, namespace: string): void => {
    const shard = shardOf[namespace];
    if (owners === undefined || shard === undefined) return;
    const owner = replicas.get(owners.get(shard) ?? '') ?? 'no replica';
    if (owner !== replica.name)
      violations.add('only the owner acts', `${replica.name} writes in ${namespace}, which ${owner} owns`);
  };
}

/**
 * Whether, at some time in the last `DECIDING_MS`, a lease had no holder or had not been renewed for its whole
 * duration. A replica that writes the shard map now may have listed the leases at that time. A member that has come
 * back since then must claim its shards again.
 */
function wasGone(states: readonly Held[], now: number, leaseMs: number): boolean {
  return states.some(({ replica, at }, index) => {
    const until = states[index + 1]?.at ?? now;
    return until >= now - DECIDING_MS && (replica === '' || until - at >= leaseMs);
  });
}

/** Returns the owners in the shard map; undefined if it is missing or broken. */
function ownersIn(lease: StoredObject): Owners | undefined {
  const text = fieldAt(lease.metadata.annotations, [SHARD_MAP]);
  if (typeof text !== 'string' || !text.endsWith('}')) return undefined; // edited manually
  const shardMap: unknown = JSON.parse(text);
  const byOwner = isJson(shardMap) ? shardMap.owners : undefined;
  const owners = new Map<number, string>();
  for (const [member, shards] of Object.entries(isJson(byOwner) ? byOwner : {}))
    for (const shard of Array.isArray(shards) ? shards : []) owners.set(Number(shard), member);
  return owners;
}
