import { foreignKind } from '../kind.ts';
import type { KubeObject } from '../object.ts';

/** A Lease (coordination.k8s.io/v1). */
export interface Lease extends KubeObject {
  readonly spec?: LeaseSpec;
}

export interface LeaseSpec {
  /** Identity of the holder; absent or empty if the lease is free. */
  readonly holderIdentity?: string | null;
  /** Seconds that candidates wait after they have seen a renewal before they acquire the lease. */
  readonly leaseDurationSeconds?: number;
  /** Time at which the holder acquired the lease, as a MicroTime (see `microTime`). */
  readonly acquireTime?: string;
  /** Time of the last renewal, as a MicroTime (see `microTime`). */
  readonly renewTime?: string;
  /** Number of times that the lease has passed to another holder. */
  readonly leaseTransitions?: number;
}

export const Lease = foreignKind<Lease>({
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  scope: 'Namespaced',
});
