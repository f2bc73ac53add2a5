/*
 * Maps namespaces to shards and shards to members. All replicas must compute the same result, including replicas of
 * other versions of the program: the results of these functions must never change.
 */

/** Returns the shard of a namespace. @param namespace '' for cluster-scoped objects */
export function shardOf(namespace: string, shards: number): number {
  return hashOf(namespace) % shards;
}

/**
 * Assigns each shard to the member with the highest score for it (rendezvous hashing). A member that joins takes shards
 * evenly from the others. A member that leaves gives its shards evenly to the remaining ones. No other shard moves.
 * @returns the member of each shard
 */
export function assign(shards: number, members: Iterable<string>): readonly (string | undefined)[] {
  const candidates = Array.from(members, (name) => ({ name, seed: hashOf(name) }));
  return Array.from({ length: shards }, (_, shard) => {
    let best: string | undefined;
    let highest = -1;
    for (const { name, seed } of candidates) {
      const score = mixed(seed ^ Math.imul(shard + 1, 0x9e3779b1));
      // The winner of a tie must not depend on the order of the members.
      if (score < highest || (score === highest && best !== undefined && name > best)) continue;
      best = name;
      highest = score;
    }
    return best;
  });
}

/**
 * Returns a 32-bit hash: FNV-1a followed by a mixer, because FNV-1a distributes the high bits of short texts poorly.
 */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return mixed(hash);
}

/** Finalizer of MurmurHash3: every input bit affects every output bit, and distinct inputs give distinct outputs. */
function mixed(bits: number): number {
  let mix = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  mix = Math.imul(mix ^ (mix >>> 13), 0xc2b2ae35);
  return (mix ^ (mix >>> 16)) >>> 0;
}
