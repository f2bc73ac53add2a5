/**
 * How old the cache of VMs may be when the table is compared with the cluster. It decides whether the comparison lists
 * the VMs again:
 * - `stale`: the cache may be older than the last writes of an earlier leader. The VMs are always listed again.
 * - `late`: the watch may lag behind. The VMs are listed again if anything differs.
 * - `listed`: the cache was filled by a list right before the comparison. The VMs are listed again only if a row has no
 *   VM.
 */
export type CacheAge = 'stale' | 'late' | 'listed';

/** Tracks how old the cache of VMs may be at each comparison during a leadership term. */
export class CacheAges {
  readonly #takesOver: boolean;
  /**
   * Number of times that this replica took over shards. The previous owner may have written newer states than those in
   * the cache. The start of a term counts too, unless the cache was filled by a list right before.
   */
  #takeOvers: number;
  /** Value of `#takeOvers` when the last successful comparison began. */
  #compared = 0;
  /** Whether the cache was filled by a list right before this term, and no comparison has begun since. */
  #isListed: boolean;

  /**
   * @param takesOver whether there may be other replicas that write rows
   * @param isListed whether the cache was filled by a list right before this term
   */
  constructor(takesOver: boolean, isListed: boolean) {
    this.#takesOver = takesOver;
    this.#isListed = isListed;
    this.#takeOvers = isListed ? 0 : 1;
  }

  /** Records that this replica took over shards from another one, which may have written newer states. */
  tookOver(): void {
    this.#takeOvers += 1;
  }

  /** Begins a comparison. @returns the age of the cache, and a function to call when the comparison has succeeded */
  begin(): { readonly age: CacheAge; readonly succeeded: () => void } {
    const takeOvers = this.#takeOvers;
    const age = this.#takesOver && this.#compared < takeOvers ? 'stale' : this.#isListed ? 'listed' : 'late';
    this.#isListed = false; // the next comparison no longer follows right after the list
    return { age, succeeded: () => (this.#compared = Math.max(this.#compared, takeOvers)) };
  }
}
