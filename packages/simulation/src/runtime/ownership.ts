import { Lease } from '@vmwright/runtime';
import type { ApiServer } from '../apiserver/api-server.ts';
import { fieldAt, isJson } from '../apiserver/json.ts';
import type { StoredObject } from '../apiserver/object.ts';
import type { Simulation } from '../world/simulation.ts';
import type { Findings } from './findings.ts';
import type { Life } from './life.ts';
import { textAt } from './read.ts';

/** The owner of each shard that has one. */
type Owners = ReadonlyMap<number, string>;

export const LEDGER = 'runtime.vmwright.dev/shards';

/** A state of a member's lease. */
interface Held {
  /** By which replica; empty where it has given it up, or somebody has deleted it. */
  readonly life: string;
  /** From when on. */
  readonly at: number;
}

/** From a look at the leases until what follows from it is written. */
const DECIDING_MS = 10_000;

interface OwnershipParts {
  readonly simulation: Simulation;
  readonly server: ApiServer;
  readonly findings: Findings;
  /** For how long a member that does not renew its lease is left alone. */
  readonly leaseMs: number;
}

/**
 * Each namespace is one's at a time: whoever sends a write about an object in it is its owner at that very moment, by the
 * ledger as it is stored. Where somebody has deleted the ledger or broken it, nobody can tell, and owners have some time
 * left. And a shard is taken only from one who is gone: his lease is empty, or was not written for its whole duration.
 * @param shardOf the shard of each namespace, which no version of the runtime may ever change
 * @returns to be called when somebody acts
 */
export function actsOnlyAsOwner(
  { simulation, server, findings, leaseMs }: OwnershipParts,
  name: string,
  shardOf: Readonly<Record<string, number>>,
) {
  /** By member, as the ledger calls it: who it was last, whatever has become of its lease. */
  const lives = new Map<string, string>();
  /** What became of each lease, in its order. */
  const members = new Map<string, Held[]>();
  let owners: Owners | undefined;
  const divided = (now: Owners | undefined) => {
    for (const [shard, owner] of (now && owners) ?? []) {
      const next = now?.get(shard);
      const states = members.get(owner);
      if (next === undefined || next === owner || states === undefined) continue;
      if (!wasGone(states, simulation.schedule.now, leaseMs))
        findings.add(
          'shards are taken only from members that are gone',
          `${lives.get(next)} takes shard ${shard} from ${lives.get(owner)}, who has renewed his lease in time`,
        );
    }
    owners = now;
  };
  server.listen(({ resource, after, before }) => {
    const lease = (after ?? before)?.object;
    if (resource.kind.plural !== Lease.plural || lease === undefined) return;
    if (lease.metadata.name === `${name}-shards`) {
      divided(after && ownersIn(after.object));
      return;
    }
    const [life = ''] = (textAt(lease, 'spec', 'holderIdentity') ?? '').split('_');
    if (life !== '') lives.set(lease.metadata.name, life);
    const states = members.get(lease.metadata.name) ?? [];
    members.set(lease.metadata.name, states);
    states.push({ life: after === undefined ? '' : life, at: simulation.schedule.now });
  });
  return (life: Life, namespace: string): void => {
    const shard = shardOf[namespace];
    if (owners === undefined || shard === undefined) return;
    const owner = lives.get(owners.get(shard) ?? '') ?? 'nobody';
    if (owner !== life.name)
      findings.add('only the owner acts', `${life.name} writes in ${namespace}, which is ${owner}'s`);
  };
}

/**
 * Whether a lease was empty, or not written for its whole duration, at a moment by which something may be decided now. Whoever
 * was gone then and has come back since has to claim his shards anew.
 */
function wasGone(states: readonly Held[], now: number, leaseMs: number): boolean {
  return states.some(({ life, at }, index) => {
    const until = states[index + 1]?.at ?? now;
    return until >= now - DECIDING_MS && (life === '' || until - at >= leaseMs);
  });
}

/** Undefined where it does not tell. */
function ownersIn(lease: StoredObject): Owners | undefined {
  const text = fieldAt(lease.metadata.annotations, [LEDGER]);
  if (typeof text !== 'string' || !text.endsWith('}')) return undefined; // broken by hand
  const ledger: unknown = JSON.parse(text);
  const byOwner = isJson(ledger) ? ledger.owners : undefined;
  const owners = new Map<number, string>();
  for (const [member, shards] of Object.entries(isJson(byOwner) ? byOwner : {}))
    for (const shard of Array.isArray(shards) ? shards : []) owners.set(Number(shard), member);
  return owners;
}
