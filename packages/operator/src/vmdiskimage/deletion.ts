import {
  type Caches,
  type Client,
  ignoreNotFound,
  type Kind,
  type KubeObject,
  keyOf,
  type Reconcile,
  type ReconcileContext,
  type Result,
  requeueAfter,
} from '@vmwright/runtime';
import { pauseOf } from '../annotations.ts';
import { auditChild } from '../kubevirt/audit.ts';
import { cascadingPolicyOf, isNamespaceTerminating } from '../kubevirt/deletion.ts';
import { DataVolume, PersistentVolumeClaim, VolumeSnapshot } from '../kubevirt/kinds.ts';
import { controllerOf, disown } from '../kubevirt/ownership.ts';
import { timeOf } from '../times.ts';
import { nameOf, snapshotChild, volumeChild } from './cleanup.ts';
import { deleteChild } from './executor.ts';
import { childrenOf, claimsOf } from './observe.ts';
import { countReferences, listReferrers, refreshUsers, usersOf } from './references.ts';
import { VMDiskImage } from './resource.ts';
import { deleting, NAMED_REFERRERS, withReferences } from './status.ts';
import type { SyncSlots } from './sync-slots.ts';

/** Requeue interval of a deletion that a user has to unblock, as a safety net: the change enqueues the image at once. */
const HELD_MS = 10 * 60_000;
/** Requeue interval while references remain, as a safety net: their deletion enqueues the image. */
const REFERENCED_MS = 60_000;
/** Requeue interval while children remain, as a safety net: their deletion enqueues the image. */
const REMAINING_MS = 10_000;

/** Reason of acts on the children of a deleted image, for the audit log. */
const DELETED = 'the image is being deleted';

/** Finalizer with which the garbage collector deletes children before their owner, whether or not the owner is in use. */
const FOREGROUND = 'foregroundDeletion';

export interface ImageFinalizerOptions {
  readonly caches: Caches;
  readonly slots: SyncSlots;
  /** Reconciles an image that is being deleted and still referenced, so that its VMs can use it. */
  readonly reconcile: Reconcile<VMDiskImage>;
}

/**
 * Deletes the children of an image that is being deleted, in an order that is safe without a transaction over several
 * objects (decision 020):
 *
 * 1. The image has a deletion timestamp.
 * 2. VirtualMachines and DataVolumes are listed from etcd. With a reference, the image stays and is maintained.
 * 3. The phase Deleting is stored. VMs do not use the image from now on.
 * 4. They are listed again. A VM that was created between the two lists makes the image usable again.
 * 5. `deletionStartedAt` is stored. The image does not come back from now on, whatever refers to it.
 * 6. Snapshots and DataVolumes are deleted. A VM that is created now waits until the image is gone.
 * 7. The finalizer is removed when the caches have no child and no claim of the image any more.
 */
export class ImageFinalizer {
  readonly #options: ImageFinalizerOptions;

  constructor(options: ImageFinalizerOptions) {
    this.#options = options;
  }

  readonly reconcileDelete: Reconcile<VMDiskImage> = async (image, context) => {
    const policy = cascadingPolicyOf(image);
    const hold = typeof policy === 'object' ? policy.problem : pauseOf(image)?.message;
    if (hold !== undefined) {
      const message = `The image is not deleted: ${hold}`;
      await context.setStatus(image, deleting(image, { state: 'stalled', message }, context.now()).status);
      return requeueAfter(HELD_MS);
    }
    if (policy === 'Orphan') {
      const isUnused =
        image.status?.deletionStartedAt !== undefined ||
        (await this.#isUnreferenced(image, context)) ||
        (await isNamespaceTerminating(image, context.client));
      return isUnused ? this.#orphan(image, context) : this.#maintain(image, context);
    }
    const marked = await this.#mark(image, context);
    return marked === undefined ? this.#maintain(image, context) : this.#remove(marked, context);
  };

  /** Whether no object refers to the image, according to lists from etcd. */
  async #isUnreferenced(image: VMDiskImage, { signal }: ReconcileContext<VMDiskImage>): Promise<boolean> {
    const { caches } = this.#options;
    const isReferenced = () => countReferences(usersOf(image, caches)).count > 0;
    if (isReferenced()) return false; // the lists are needed only to prove the opposite
    const unlistable = await refreshUsers(caches, signal);
    if (unlistable.length > 0)
      throw new Error(
        `the references to the image cannot be counted, because these namespaces cannot be listed: ${unlistable.join(', ')}`,
      );
    return !isReferenced();
  }

  /**
   * Stores that the deletion of the data begins, after two checks of the references. Both writes carry the resourceVersion, so they
   * prove that the image was current. What is missing from the caches proves nothing: a user may have deleted a child.
   * @returns undefined if an object refers to the image
   */
  async #mark(image: VMDiskImage, context: ReconcileContext<VMDiskImage>): Promise<VMDiskImage | undefined> {
    if (image.status?.deletionStartedAt !== undefined) return image;
    if (!(await this.#isUnreferenced(image, context)))
      return (await isNamespaceTerminating(image, context.client))
        ? this.#override(image, context)
        : undefined;
    const message = 'Deleting the snapshots and the disk of the image';
    const { status } = deleting(image, { state: 'progressing', message }, context.now());
    const marked = await context.setStatus(image, { ...status, phase: 'Deleting' });
    if (!(await this.#isUnreferenced(marked, context))) return undefined;
    const deletionStartedAt = timeOf(context.now());
    return context.setStatus(marked, { ...marked.status, deletionStartedAt });
  }

  /**
   * Begins the deletion of a referenced image whose namespace is being deleted. The namespace controller deletes its data in any case,
   * so the image would only keep the namespace from being deleted.
   */
  #override(
    image: VMDiskImage,
    { setStatus, event, now }: ReconcileContext<VMDiskImage>,
  ): Promise<VMDiskImage> {
    const users = listReferrers(countReferences(usersOf(image, this.#options.caches)), NAMED_REFERRERS);
    const message = `Deleting the image, because its namespace is being deleted, although it is used by ${users}`;
    event(image, { type: 'Warning', reason: 'DeletedInUse', note: message });
    const { status } = deleting(image, { state: 'progressing', message }, now());
    return setStatus(image, { ...status, phase: 'Deleting', deletionStartedAt: timeOf(now()) });
  }

  async #remove(image: VMDiskImage, context: ReconcileContext<VMDiskImage>): Promise<Result> {
    const { caches, slots } = this.#options;
    const { client, now, setStatus } = context;
    const children = () => {
      const { volumes, snapshots } = childrenOf(image, caches);
      return [...snapshots.map(snapshotChild), ...volumes.map(volumeChild)];
    };
    for (const child of children())
      if (child.metadata.deletionTimestamp === undefined)
        await deleteChild(child, image, DELETED, context, caches);
    const claims = claimsOf(image, caches).map(claimText);
    const cached = [...children().map(nameOf), ...claims];
    const remaining = cached.length > 0 ? cached : await unseenClaim(image, client);
    if (remaining.length > 0) {
      const message = `Waiting until these objects are deleted: ${remaining.join(', ')}`;
      await setStatus(image, deleting(image, { state: 'progressing', message }, now()).status);
      return requeueAfter(REMAINING_MS);
    }
    await slots.release(image.metadata.uid ?? '', client);
    return undefined;
  }

  /**
   * Keeps the children and removes the image from their owners, so that the garbage collector does not delete them. They are listed
   * from etcd: a child that a late watch has not delivered yet would be deleted with the image.
   */
  async #orphan(image: VMDiskImage, { client, signal, log }: ReconcileContext<VMDiskImage>): Promise<Result> {
    const { caches, slots } = this.#options;
    const refreshed = [caches.get(DataVolume).refresh(signal), caches.get(VolumeSnapshot).refresh(signal)];
    const unlistable = (await Promise.all(refreshed)).flat();
    const { namespace: own = '' } = image.metadata;
    if (unlistable.includes(own))
      throw new Error(
        `the children of the image cannot be listed in the namespace ${own}, so it is not removed`,
      );
    const { volumes, snapshots } = childrenOf(image, caches);
    const orphan = async (kind: Kind, child: KubeObject) => {
      if (await disown(kind, child, image, client))
        auditChild(log, VMDiskImage, image, { act: 'orphan', kind, child, reason: DELETED });
    };
    for (const volume of volumes) await orphan(DataVolume, volume);
    for (const snapshot of snapshots) await orphan(VolumeSnapshot, snapshot);
    await slots.release(image.metadata.uid ?? '', client);
    return undefined;
  }

  /** Keeps a referenced image usable while it waits for its deletion. */
  async #maintain(found: VMDiskImage, context: ReconcileContext<VMDiskImage>): Promise<Result> {
    const { caches, reconcile } = this.#options;
    const newest = context.cache(VMDiskImage).get(context.key); // this reconcile may have stored the phase Deleting
    const image = newest !== undefined && newest.metadata.uid === found.metadata.uid ? newest : found;
    // What is created would be deleted again at once, and every import costs money.
    if (image.metadata.finalizers?.includes(FOREGROUND)) {
      const users = usersOf(image, caches);
      await context.setStatus(image, withReferences(image, { users }, context.now()).status);
      return requeueAfter(REFERENCED_MS);
    }
    const result = await reconcile(image, context);
    return requeueAfter(Math.min(result?.requeueAfterMs ?? REFERENCED_MS, REFERENCED_MS));
  }
}

/** Returns the claim of the image's disk if it exists although the watch of claims has not delivered it yet. */
async function unseenClaim(
  { metadata: { namespace }, status }: VMDiskImage,
  client: Pick<Client, 'get'>,
): Promise<readonly string[]> {
  if (status?.dataVolume === undefined) return [];
  const claim = await ignoreNotFound(
    client.get(PersistentVolumeClaim, { namespace, name: status.dataVolume }),
  );
  return claim === undefined || controllerOf(claim) === undefined ? [] : [claimText(claim)];
}

function claimText({ metadata }: PersistentVolumeClaim): string {
  return `PersistentVolumeClaim ${keyOf(metadata)}`;
}
