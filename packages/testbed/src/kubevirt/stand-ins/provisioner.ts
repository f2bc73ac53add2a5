import { field, type KubeObject } from '../../kubernetes/api.ts';
import type { Cluster } from '../../kubernetes/cluster.ts';
import { Mirror } from '../../kubernetes/mirror.ts';
import { retry } from './retry.ts';
import { DRIVER } from './storage-classes.ts';

/** Annotation that makes the provisioner ignore a claim, which then stays Pending. */
export const UNPROVISIONED = { 'testbed.vmwright.dev/unprovisioned': 'true' };

/**
 * Stand-in for the CSI provisioner. Creates a volume for each claim of its storage classes, and deletes the volume once
 * it is released. The real kube-controller-manager binds claims, and the real scheduler selects nodes.
 */
export function startProvisioner({ api }: Cluster): Disposable {
  const stack = new DisposableStack();
  const classes = stack.use(new Mirror(api, '/apis/storage.k8s.io/v1/storageclasses'));
  const claims = stack.use(
    new Mirror(api, '/api/v1/persistentvolumeclaims', ({ metadata: { uid } }) => {
      const unbound = () => !stack.disposed && isUnbound(claims.get(uid));
      void retry(() => provision(claims.get(uid)), unbound);
    }),
  );
  const volumes = stack.use(
    new Mirror(api, '/api/v1/persistentvolumes', ({ metadata: { uid } }) => {
      const released = () => !stack.disposed && isReleased(volumes.get(uid));
      void retry(() => reclaim(volumes.get(uid)), released);
    }),
  );
  return stack;

  async function provision(claim: KubeObject | undefined): Promise<void> {
    if (claim === undefined || isUnprovisioned(claim)) return;
    const name = field(claim, 'spec', 'storageClassName');
    await classes.until(() => classes.find(({ metadata }) => metadata.name === name) !== undefined);
    const storageClass = classes.find(({ metadata }) => metadata.name === name);
    if (field(storageClass, 'provisioner') !== DRIVER) return;
    const waits = field(storageClass, 'volumeBindingMode') === 'WaitForFirstConsumer';
    if (waits && claim.metadata.annotations?.['volume.kubernetes.io/selected-node'] === undefined) return;
    await api.create('/api/v1/persistentvolumes', volumeFor(claim));
  }

  async function reclaim(volume: KubeObject | undefined): Promise<void> {
    if (volume !== undefined) await api.delete(`/api/v1/persistentvolumes/${volume.metadata.name}`);
  }
}

function isUnprovisioned({ metadata }: KubeObject): boolean {
  return Object.keys(UNPROVISIONED).some((key) => metadata.annotations?.[key] !== undefined);
}

function isUnbound(claim: KubeObject | undefined): boolean {
  if (claim === undefined || claim.metadata.deletionTimestamp !== undefined) return false;
  return field(claim, 'spec', 'volumeName') === undefined;
}

function isReleased(volume: KubeObject | undefined): boolean {
  return field(volume, 'spec', 'csi', 'driver') === DRIVER && field(volume, 'status', 'phase') === 'Released';
}

function volumeFor(claim: KubeObject): object {
  const { name, namespace, uid } = claim.metadata;
  const spec = (...path: readonly string[]) => field(claim, 'spec', ...path);
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: `pvc-${uid}`, annotations: { 'pv.kubernetes.io/provisioned-by': DRIVER } },
    spec: {
      capacity: { storage: spec('resources', 'requests', 'storage') },
      accessModes: spec('accessModes'),
      volumeMode: spec('volumeMode'),
      storageClassName: spec('storageClassName'),
      persistentVolumeReclaimPolicy: 'Delete',
      csi: { driver: DRIVER, volumeHandle: uid },
      claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid },
    },
  };
}
