import type { World } from '@vmwright/core';

/** The part of a `World` that the client uses. `nodeWorld` of `@vmwright/core` is the real one. */
export type VsphereWorld = Pick<
  World,
  'monotonic' | 'after' | 'random' | 'uuid' | 'connect' | 'pinsCertificates'
>;
