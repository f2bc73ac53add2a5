import { isRecord } from '../client/record.ts';
import type { Lease } from '../kind/builtin/lease.ts';
import { hashOf } from './assignment.ts';

/*
 * Owners of all shards, stored as JSON in an annotation of one Lease:
 * {"shards":4,"owners":{"x-1f":[0,2],"x-8a":[1]},"sum":"9c3e01aa"}
 */

/** Annotation that stores the shard map. */
export const SHARD_MAP_ANNOTATION = 'runtime.vmwright.dev/shards';

/** Owner of each shard; undefined for a shard without an owner. */
export type Owners = readonly (string | undefined)[];

/**
 * Content of the shard map.
 * - absent: the Lease that stores it does not exist
 * - damaged: something other than a member has changed it
 * - blank: it names no owners; a member that holds shards stops when it reads a blank map
 */
export type ShardMap = 'absent' | 'damaged' | 'blank' | Owners;

const MAX_SHARDS = 4_096;

/** Reads the shard map from its Lease. */
export function shardMapOf(lease: Lease | undefined): ShardMap {
  if (lease === undefined) return 'absent';
  const text = lease.metadata.annotations?.[SHARD_MAP_ANNOTATION];
  if (text === undefined) return 'blank';
  return parse(text, lease.spec?.renewTime) ?? 'damaged';
}

/**
 * Formats the shard map.
 * @param renewTime `renewTime` of the Lease that will store the text; in a Lease with another `renewTime`, the text
 *   counts as damaged
 */
export function shardMapText(owners: Owners, renewTime: string | undefined): string {
  // A Map instead of an object, because a member may be named `constructor`.
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
  if (count < 1 || count > MAX_SHARDS) return undefined;
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

/** Returns a checksum that detects manual edits. It does not protect against deliberate forgery. */
function sumOf(body: { shards: number; owners: object }, renewTime = ''): string {
  return hashOf(`${renewTime} ${JSON.stringify([body.shards, body.owners])}`).toString(16);
}
