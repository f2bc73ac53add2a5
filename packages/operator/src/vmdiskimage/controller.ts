import {
  annotationsChanged,
  any,
  Channel,
  ConfigMap,
  type ControllerPermissions,
  generationChanged,
  type Manager,
  Namespace,
  type Permission,
  type Predicate,
  statusChanged,
  type World,
  watch,
} from '@vmwright/runtime';
import { resolved } from '../kubevirt/clones.ts';
import {
  DataSource,
  DataVolume,
  PersistentVolumeClaim,
  StorageClass,
  VolumeSnapshot,
} from '../kubevirt/kinds.ts';
import type { KubevirtSettings } from '../settings/kubevirt.ts';
import { imageKeyOf } from '../virtualmachine/image-ref.ts';
import { VirtualMachine } from '../virtualmachine/resource.ts';
import { ImageFinalizer } from './deletion.ts';
import { Executor } from './executor.ts';
import { claimPrefix } from './identity.ts';
import { imageMetrics } from './metrics.ts';
import { clonedImages, imagesWithPrefix, indexChildren } from './observe.ts';
import { ImageReconciler } from './reconciler.ts';
import { indexUsers } from './references.ts';
import { VMDiskImage } from './resource.ts';
import { SLOTS_NAME, slotStore } from './slot-store.ts';
import { SyncQueue } from './sync-queue.ts';
import { SyncSlots } from './sync-slots.ts';

const FINALIZER = 'vmwright.dev/vmdiskimage';

export interface ImageControllerOptions extends KubevirtSettings {
  readonly world: World;
  /** Namespace of the operator, which contains the ConfigMap with the sync slots (permits to import an image). */
  readonly namespace: string;
}

/** Permissions of the controller, for the RBAC that the operator ships. */
export const IMAGE_PERMISSIONS: ControllerPermissions = {
  for: VMDiskImage,
  finalizer: { name: FINALIZER },
  owns: [DataVolume, VolumeSnapshot],
  watches: [{ kind: PersistentVolumeClaim }, { kind: VirtualMachine }, { kind: DataSource }],
  reads: [StorageClass],
  permissions: [
    { kind: VMDiskImage, verbs: ['get', 'delete'] },
    { kind: DataVolume, verbs: ['get', 'create', 'patch', 'delete'] },
    { kind: VolumeSnapshot, verbs: ['get', 'create', 'patch', 'delete'] },
    { kind: PersistentVolumeClaim, verbs: ['get'] },
    { kind: Namespace, verbs: ['get'] },
  ],
};

/** Permissions of the controller in the operator's namespace. RBAC cannot restrict `create` by name. */
export const IMAGE_OWN_PERMISSIONS: readonly Permission[] = [
  { kind: ConfigMap, verbs: ['create'] },
  { kind: ConfigMap, verbs: ['get', 'patch'], names: [SLOTS_NAME] },
];

/**
 * Adds the controller of VMDiskImages to the manager.
 *
 * Guarantees:
 * - At most `syncs.concurrency` images are synced at any time, first come, first served, whichever replica leads.
 * - An image is Ready only while its imported disk and a usable snapshot exist.
 * - Before the operator deletes the data of a deleted image, lists from etcd show that no VirtualMachine and no
 *   DataVolume refers to the image. There is one exception: references do not matter if Kubernetes itself deletes the
 *   data, in a foreground deletion or with the namespace (`ImageFinalizer`).
 * - Objects that the image does not own are never changed.
 */
export function controlVmDiskImages(manager: Manager, options: ImageControllerOptions): void {
  const { namespace, syncs, pruneAfterMs, imageNamespaces, concurrency } = options;
  const limits = { syncs, pruneAfterMs, imageNamespaces };
  const { caches } = manager;
  const images = caches.get(VMDiskImage);
  indexUsers(caches);
  indexChildren(caches);
  const channel = new Channel();
  const queue = new SyncQueue();
  const enqueueNext = () => {
    const waiting = queue.images.filter(({ phase }) => phase === 'Queued');
    for (const { key } of waiting.slice(0, syncs.concurrency)) channel.enqueue(key);
  };
  images.subscribe((event) => {
    if (queue.update(event)) enqueueNext();
  });
  const slots = new SyncSlots({
    storeOf: (client) => slotStore(client, namespace),
    limit: syncs.concurrency,
    queue: () => queue.images,
    isCached: (key, uid) => images.get(key)?.metadata.uid === uid,
    onReleased: enqueueNext,
  });
  const metrics = imageMetrics(manager.registry, queue);
  const executor = new Executor({ caches, slots, limits, metrics });
  const { reconcile } = new ImageReconciler({ caches, slots, limits, metrics, executor });
  const { reconcileDelete } = new ImageFinalizer({ caches, slots, limits, reconcile });
  manager.control({
    for: VMDiskImage,
    predicate: any(generationChanged, annotationsChanged, statusChanged), // statusChanged, so that an edited status is restored
    owns: [DataVolume, VolumeSnapshot],
    watches: [
      watch(VirtualMachine, (machine) => [imageKeyOf(machine)], isReferenceChange),
      watch(DataVolume, (volume) => clonedImages(resolved(volume, caches), caches)),
      watch(DataSource, (source) => clonedImages(source, caches)),
      watch(PersistentVolumeClaim, (claim) => imagesWithPrefix(claimPrefix(claim), caches)),
    ],
    reads: [StorageClass],
    sources: [channel.source],
    concurrency,
    backoff: { maxMs: 60_000 },
    onStartedLeading: () => slots.reset(),
    reconcile,
    finalizer: { name: FINALIZER, finalize: reconcileDelete },
  });
}

/** Matches changes of a VirtualMachine that concern its image. Most changes of the status do not. */
const isReferenceChange: Predicate<VirtualMachine> = ({ type, before, object }) =>
  type !== 'changed' ||
  before?.metadata.uid !== object.metadata.uid ||
  before?.status?.snapshot !== object.status?.snapshot ||
  (before !== undefined && imageKeyOf(before) !== imageKeyOf(object));
