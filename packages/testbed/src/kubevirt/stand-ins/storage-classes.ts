/** Name of the simulated CSI driver. */
export const DRIVER = 'csi.testbed.vmwright.dev';

/** Behaviours that the parameter `behaviour` of a VolumeSnapshotClass selects. */
type SnapshotBehaviour = 'hang' | 'fail';

/**
 * Returns the StorageClasses and VolumeSnapshotClasses of the testbed. The names `gp3` and `ebs-snapshot` come from the
 * sample VirtualMachine. Only `gp3` allows the expansion of volumes.
 */
export function storageManifests(): object[] {
  return [
    storageClass('immediate', { isDefault: true }),
    storageClass('wait-for-first-consumer', { volumeBindingMode: 'WaitForFirstConsumer' }),
    storageClass('gp3', { allowVolumeExpansion: true }),
    snapshotClass('testbed', { isDefault: true }),
    snapshotClass('ebs-snapshot', {}),
    snapshotClass('testbed-never-ready', { behaviour: 'hang' }),
    snapshotClass('testbed-fail', { behaviour: 'fail' }),
  ];
}

interface StorageClassOptions {
  readonly isDefault?: boolean;
  readonly volumeBindingMode?: 'Immediate' | 'WaitForFirstConsumer';
  readonly allowVolumeExpansion?: boolean;
}

function storageClass(
  name: string,
  { isDefault = false, volumeBindingMode = 'Immediate', allowVolumeExpansion = false }: StorageClassOptions,
): object {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name, annotations: { 'storageclass.kubernetes.io/is-default-class': String(isDefault) } },
    provisioner: DRIVER,
    volumeBindingMode,
    allowVolumeExpansion,
    reclaimPolicy: 'Delete',
  };
}

/** Annotation of the default VolumeSnapshotClass, for VolumeSnapshots that name no class. */
export const DEFAULT_SNAPSHOT_CLASS = 'snapshot.storage.kubernetes.io/is-default-class';

interface SnapshotClassOptions {
  readonly isDefault?: boolean;
  readonly behaviour?: SnapshotBehaviour;
}

function snapshotClass(name: string, { isDefault = false, behaviour }: SnapshotClassOptions): object {
  return {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshotClass',
    metadata: { name, annotations: { [DEFAULT_SNAPSHOT_CLASS]: String(isDefault) } },
    driver: DRIVER,
    deletionPolicy: 'Delete',
    ...(behaviour && { parameters: { behaviour } }),
  };
}
