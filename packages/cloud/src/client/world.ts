import type { World } from '@vmwright/core';

/** The part of a `World` that the client uses. `nodeWorld` of `@vmwright/core` implements it. */
export type CloudWorld = Pick<World, 'now' | 'monotonic' | 'after' | 'random' | 'connect'>;
