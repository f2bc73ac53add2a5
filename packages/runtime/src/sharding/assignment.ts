/*
 * Which shard a namespace is in, and which member should own a shard. All replicas must agree on both, also those of
 * another version of the program: nothing here may ever change its results.
 */

/** @param namespace '' for objects that are in none */
export function shardOf(namespace: string, shards: number): number {
  return hashOf(namespace) % shards;
}

/**
 * Rendezvous hashing: each shard goes to the member with the highest draw for it. A member that joins takes its share
 * evenly from all others, one that leaves gives its share evenly to them, and no other shard moves.
 * @returns the member of each shard
 */
export function assign(shards: number, members: Iterable<string>): readonly (string | undefined)[] {
  const draws = Array.from(members, (name) => ({ name, seed: hashOf(name) }));
  return Array.from({ length: shards }, (_, shard) => {
    let best: string | undefined;
    let highest = -1;
    for (const { name, seed } of draws) {
      const draw = mixed(seed ^ Math.imul(shard + 1, 0x9e3779b1));
      // Of equal draws the same one must win everywhere, whatever order the members come in.
      if (draw < highest || (draw === highest && best !== undefined && name > best)) continue;
      best = name;
      highest = draw;
    }
    return best;
  });
}

/** 32 bits of a text: FNV-1a, whose high bits are poor for short texts, and a mixer. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return mixed(hash);
}

/** Lets every bit have its part in every other; no two numbers become the same. */
function mixed(bits: number): number {
  let mix = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  mix = Math.imul(mix ^ (mix >>> 13), 0xc2b2ae35);
  return (mix ^ (mix >>> 16)) >>> 0;
}
