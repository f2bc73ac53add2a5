import type { World } from '@vmwright/core';

/** The part of a `World` that the client uses. `nodeWorld` of `@vmwright/core` is the real one. */
export type CloudWorld = Pick<World, 'now' | 'monotonic' | 'after' | 'random' | 'connect'>;
