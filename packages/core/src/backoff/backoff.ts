import type { World } from '../world/world.ts';

/** Delay after the n-th failure in a row: `baseMs · 2ⁿ⁻¹`, at most `maxMs`. */
export interface BackoffOptions {
  readonly baseMs: number;
  readonly maxMs: number;
}

/** Returns the delay after a number of failures in a row, without jitter; 0 without a failure. */
export function exponentialMs(failures: number, { baseMs, maxMs }: BackoffOptions): number {
  return failures <= 0 ? 0 : Math.min(baseMs * 2 ** (failures - 1), maxMs);
}

/** Returns the delay before the next attempt: exponential in the number of failures, with a jitter of up to ± 50 %. */
export function backoffMs(world: Pick<World, 'random'>, failures: number, options: BackoffOptions): number {
  return jittered(world, exponentialMs(failures, options));
}

/**
 * Returns `ms` plus or minus a random deviation, so that clients that failed together do not retry together.
 * @param fraction largest deviation, as a fraction of `ms`
 */
export function jittered(world: Pick<World, 'random'>, ms: number, fraction = 0.5): number {
  return ms * (1 - fraction + 2 * fraction * world.random());
}
