import type { World } from '@vmwright/core';

/** Clock, timers, randomness and network of the client. `nodeWorld` of `@vmwright/core` implements it. */
export type VsphereWorld = Pick<
  World,
  'monotonic' | 'after' | 'random' | 'uuid' | 'connect' | 'pinsCertificates'
>;
