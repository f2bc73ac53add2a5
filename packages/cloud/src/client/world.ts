import type { World } from '@vmwright/core';

/**
 * The part of the environment (`World`) that the client uses: clocks, randomness and network. Tests replace it. In
 * production it is `nodeWorld` of `@vmwright/core`.
 */
export type CloudWorld = Pick<World, 'now' | 'monotonic' | 'after' | 'random' | 'connect'>;
