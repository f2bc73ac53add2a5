import { foreignKind } from '../kind.ts';
import type { KubeObject } from '../object.ts';

export interface Lease extends KubeObject {
  readonly spec?: LeaseSpec;
}

export interface LeaseSpec {
  /** Absent or empty: nobody's. */
  readonly holderIdentity?: string | null;
  /** How long others leave the holder alone after they have seen its last renewal. */
  readonly leaseDurationSeconds?: number;
  /** A micro-time, see `microTime`. */
  readonly acquireTime?: string;
  /** A micro-time, see `microTime`. */
  readonly renewTime?: string;
  /** How often the holder has changed. */
  readonly leaseTransitions?: number;
}

export const Lease = foreignKind<Lease>({
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  scope: 'Namespaced',
});
