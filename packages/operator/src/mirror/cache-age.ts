/**
 * How old the cache of VMs may be:
 * - `stale`: older than what an earlier leader has written. It is refreshed in any case.
 * - `late`: its watch may be behind. It is refreshed unless nothing differs.
 * - `listed`: it was just listed. It is refreshed only if a row has no VM.
 */
export type CacheAge = 'stale' | 'late' | 'listed';

/** How old the cache of VMs may be at each comparison of a term. */
export class CacheAges {
  readonly #takesOver: boolean;
  /** Number of times that another replica may have written newer states than those in the cache. */
  #takeOvers: number;
  /** Value of `#takeOvers` that the last comparison has taken into account. */
  #compared = 0;
  /** Whether the cache was listed right before this term. */
  #isListed: boolean;

  /**
   * @param takesOver whether other replicas may write newer states than those in the cache
   * @param isListed whether the cache was listed right before this term
   */
  constructor(takesOver: boolean, isListed: boolean) {
    this.#takesOver = takesOver;
    this.#isListed = isListed;
    this.#takeOvers = isListed ? 0 : 1;
  }

  /** Another replica may have written newer states. */
  tookOver(): void {
    this.#takeOvers += 1;
  }

  /** Begins a comparison. @returns the age for it, and a function to call when it has succeeded */
  begin(): { readonly age: CacheAge; readonly succeeded: () => void } {
    const takeOvers = this.#takeOvers;
    const age = this.#takesOver && this.#compared < takeOvers ? 'stale' : this.#isListed ? 'listed' : 'late';
    this.#isListed = false; // at the next comparison
    return { age, succeeded: () => (this.#compared = Math.max(this.#compared, takeOvers)) };
  }
}
