import { isRecord } from '../client/record.ts';
import type { Lease } from '../kind/builtin/lease.ts';
import { hashOf } from './assignment.ts';

/*
 * Who owns which shard, as it is written into an annotation of one lease:
 * {"shards":4,"owners":{"x-1f":[0,2],"x-8a":[1]},"sum":"9c3e01aa"}
 */

export const LEDGER = 'runtime.vmwright.dev/shards';

/** The owner of each shard; undefined for nobody. */
export type Owners = readonly (string | undefined)[];

/**
 * What a look at the ledger tells.
 * - absent: there is none, or somebody has deleted it
 * - damaged: somebody else than a member has changed it
 * - blank: who owns what is unknown, and all members can see that it is
 */
export type Ledger = 'absent' | 'damaged' | 'blank' | Owners;

const MOST_SHARDS = 4_096;

export function ledgerOf(lease: Lease | undefined): Ledger {
  if (lease === undefined) return 'absent';
  const text = lease.metadata.annotations?.[LEDGER];
  if (text === undefined) return 'blank';
  return parse(text, lease.spec?.renewTime) ?? 'damaged';
}

/** @param renewTime of the lease it is written into: a text from another time does not count */
export function ledgerText(owners: Owners, renewTime: string | undefined): string {
  // Not collected in an object: a replica may be called `constructor`.
  const byOwner = new Map<string, number[]>();
  for (const [shard, owner] of owners.entries()) {
    if (owner === undefined) continue;
    const shards = byOwner.get(owner) ?? [];
    shards.push(shard);
    byOwner.set(owner, shards);
  }
  const body = { shards: owners.length, owners: Object.fromEntries(byOwner) };
  return JSON.stringify({ ...body, sum: sumOf(body, renewTime) });
}

function parse(text: string, renewTime: string | undefined): Owners | undefined {
  const { shards, owners: byOwner, sum } = jsonOf(text);
  if (!Number.isInteger(shards) || !isRecord(byOwner)) return undefined;
  const count = Number(shards);
  if (count < 1 || count > MOST_SHARDS) return undefined;
  if (sum !== sumOf({ shards: count, owners: byOwner }, renewTime)) return undefined;
  const owners = new Array<string | undefined>(count).fill(undefined);
  for (const [owner, list] of Object.entries(byOwner)) {
    if (!Array.isArray(list)) return undefined;
    for (const shard of list) owners[shard] = owner;
  }
  return owners;
}

function jsonOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

/** No seal against malice, but whoever edits the ledger by hand does not hit it. */
function sumOf(body: { shards: number; owners: object }, renewTime = ''): string {
  return hashOf(`${renewTime} ${JSON.stringify([body.shards, body.owners])}`).toString(16);
}
