import {
  annotationsChanged,
  any,
  type Caches,
  type ControllerPermissions,
  generationChanged,
  type Manager,
  Secret,
  statusChanged,
  type World,
} from '@vmwright/runtime';
import {
  CdiConfig,
  DataVolume,
  KubevirtInstance,
  KubevirtMachine,
  NetworkAttachmentDefinition,
  PersistentVolumeClaim,
  StorageClass,
} from '../kubevirt/kinds.ts';
import { indexOwners } from '../kubevirt/owner-index.ts';
import type { KubevirtSettings } from '../settings/kubevirt.ts';
import { VMDiskImage } from '../vmdiskimage/resource.ts';
import { reconcileDelete } from './deletion.ts';
import { MANAGED_SELECTOR } from './identity.ts';
import type { ImageAccessSettings } from './image-access.ts';
import { PasswordReader } from './passwords.ts';
import { VirtualMachineReconciler } from './reconciler.ts';
import { VirtualMachine } from './resource.ts';
import {
  FOREIGN_CLONE_INDEX,
  foreignCloneKeys,
  SNAPSHOT_INDEX,
  SnapshotClones,
  snapshotKeys,
} from './snapshot-clones.ts';
import { addWatchIndexes, watchesOf } from './watches.ts';

const FINALIZER = 'vmwright.dev/virtualmachine';

/** Maximum delay of a retry, so that machines are retried soon after a long outage. */
const MAX_BACKOFF_MS = 60_000;

export interface VirtualMachineControllerOptions
  extends ImageAccessSettings,
    Pick<KubevirtSettings, 'concurrency'> {
  readonly world: World;
}

const OWNED = [KubevirtMachine, DataVolume, Secret] as const;
const WATCHED = [
  ...[KubevirtInstance, PersistentVolumeClaim, VMDiskImage],
  ...[NetworkAttachmentDefinition, StorageClass, CdiConfig],
] as const;

/** Permissions of the controller, for the RBAC that the operator ships. */
export const VIRTUAL_MACHINE_PERMISSIONS: ControllerPermissions = {
  for: VirtualMachine,
  owns: OWNED,
  watches: WATCHED.map((kind) => ({ kind })),
  finalizer: { name: FINALIZER },
  permissions: [
    { kind: KubevirtMachine, verbs: ['get', 'create', 'patch', 'delete'] },
    { kind: KubevirtInstance, verbs: ['get', 'delete'] },
    { kind: VirtualMachine, verbs: ['get'] },
    { kind: DataVolume, verbs: ['get', 'create', 'patch', 'delete'] },
    // CDI requires this permission for a clone, in the namespace of the source.
    { kind: DataVolume, subresource: 'source', verbs: ['create'] },
    { kind: PersistentVolumeClaim, verbs: ['patch'] },
    { kind: Secret, verbs: ['get', 'create', 'patch', 'delete'] },
    { kind: VMDiskImage, verbs: ['create'] },
  ],
};

/**
 * Adds the controller of VirtualMachines to the manager.
 *
 * Guarantees:
 * - Each VirtualMachine has one KubeVirt VirtualMachine and one current root disk. The names of the disk and of the
 *   snapshot that it is cloned from are stored, with a resourceVersion precondition, before the disk is created.
 * - A DataVolume that succeeded is deleted only if its VirtualMachine is being deleted.
 * - Objects of other owners are never changed.
 * - The finalizer stays until the machine, its instance, its disks and its Secret are gone. With the policy Orphan, it
 *   stays until they have lost their owner reference.
 */
export function controlVirtualMachines(manager: Manager, options: VirtualMachineControllerOptions): void {
  const { caches } = manager;
  configureCaches(caches);
  const machines = caches.get(VirtualMachine);
  const passwords = new PasswordReader();
  machines.subscribe(({ type, object }) => {
    if (type === 'removed') passwords.evict(object.metadata.uid ?? '');
  });
  const clones = new SnapshotClones(machines, caches.get(DataVolume));
  const reconciler = new VirtualMachineReconciler({ ...options, clones, passwords });
  manager.control({
    for: VirtualMachine,
    predicate: any(generationChanged, annotationsChanged, statusChanged), // statusChanged, so that an edited status is restored
    owns: OWNED,
    watches: watchesOf(caches),
    concurrency: options.concurrency,
    backoff: { maxMs: MAX_BACKOFF_MS },
    reconcile: reconciler.reconcile,
    finalizer: { name: FINALIZER, finalize: reconcileDelete },
  });
}

/**
 * Limits the caches of KubeVirt objects and Secrets to objects with the label of the operator. Adds the indexes. Must
 * be called before the first controller is added.
 */
function configureCaches(caches: Caches): void {
  caches.get(KubevirtMachine, { labelSelector: MANAGED_SELECTOR });
  caches.get(KubevirtInstance, { labelSelector: MANAGED_SELECTOR });
  caches.get(Secret, { labelSelector: MANAGED_SELECTOR });
  // Optional: clusters without Multus lack this kind and have only the pod network.
  caches.get(NetworkAttachmentDefinition, { metadataOnly: true, optional: true });
  const volumes = caches.get(DataVolume);
  indexOwners(volumes);
  volumes.addIndex(FOREIGN_CLONE_INDEX, foreignCloneKeys);
  caches.get(VirtualMachine).addIndex(SNAPSHOT_INDEX, snapshotKeys);
  addWatchIndexes(caches);
}
