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
import { disown } from '../kubevirt/ownership.ts';
import { timeOf } from '../times.ts';
import { nameOf, snapshotChild, volumeChild } from './cleanup.ts';
import { deleteChild } from './executor.ts';
import { childrenOf, claimsOf, type ImageLimits, isDeletedWith } from './observe.ts';
import { countReferences, listReferrers, refreshUsers, usersOf } from './references.ts';
import { VMDiskImage } from './resource.ts';
import { deleting, NAMED_REFERRERS } from './status.ts';
import type { SyncSlots } from './sync-slots.ts';

/**
 * Requeue interval while the image is paused or its deletion policy is invalid. It is a safety net: a user's change of
 * the annotation enqueues the image immediately.
 */
const HELD_MS = 10 * 60_000;
/** Requeue interval while references remain, as a safety net: their deletion enqueues the image. */
const REFERENCED_MS = 60_000;
/** Requeue interval while children remain, as a safety net: their deletion enqueues the image. */
const REMAINING_MS = 10_000;

/** Reason in the audit log for deleting or orphaning the children of a deleted image. */
const DELETED = 'the image is being deleted';

/**
 * Finalizer that a foreground deletion adds. It makes the garbage collector delete the children before their owner,
 * even if the children are in use.
 */
const FOREGROUND = 'foregroundDeletion';

export interface ImageFinalizerOptions {
  readonly caches: Caches;
  readonly slots: SyncSlots;
  readonly limits: ImageLimits;
  /** Reconciles an image that is being deleted but still referenced, so that VMs can still use it. */
  readonly reconcile: Reconcile<VMDiskImage>;
}

/**
 * Deletes or orphans the children of an image that is being deleted. The order of these steps is safe without a
 * transaction over several objects (decision 020):
 *
 * 1. The image has a deletion timestamp.
 * 2. VirtualMachines and DataVolumes are listed from etcd. If one of them refers to the image, the image stays and is
 *    maintained.
 * 3. The phase Deleting is stored. From now on, VMs do not use the image.
 * 4. VirtualMachines and DataVolumes are listed again. If an object that refers to the image was created since step 2,
 *    the image becomes usable again.
 * 5. `deletionStartedAt` is stored. From now on, the image cannot become usable again, even if an object refers to it.
 * 6. Snapshots and DataVolumes are deleted, or lose their owner reference. A VM that is created now waits until the
 *    image is gone.
 * 7. The finalizer is removed when no child and no claim of the image is left. After `--cascade=orphan`, the image
 *    exists until the garbage collector has also removed the finalizer `orphan`.
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
    const message =
      policy === 'Orphan'
        ? 'Deleting the image; its snapshots and its disk are kept without an owner'
        : 'Deleting the snapshots and the disk of the image';
    const marked = await this.#mark(image, message, context);
    if (marked === undefined) return this.#maintain(image, context);
    return policy === 'Orphan' ? this.#orphan(marked, context) : this.#remove(marked, context);
  };

  /** Whether no object refers to the image, according to lists from etcd. */
  async #isUnreferenced(image: VMDiskImage, { signal }: ReconcileContext<VMDiskImage>): Promise<boolean> {
    const { caches, limits } = this.#options;
    const isReferenced = () => countReferences(usersOf(image, caches, limits)).count > 0;
    if (isReferenced()) return false; // a list is needed only to prove that there are no references
    const unlistable = await refreshUsers(caches, signal);
    if (unlistable.length > 0)
      throw new Error(
        `the references to the image cannot be counted, because these namespaces cannot be listed: ${unlistable.join(', ')}`,
      );
    return !isReferenced();
  }

  /**
   * Stores the phase Deleting and then `deletionStartedAt`. Checks the references before each write. Both writes carry
   * the resourceVersion, so they fail if the image has changed. `deletionStartedAt` records that the deletion has
   * begun. Missing children would not prove it, because a user may have deleted them.
   * @returns undefined if the deletion has to wait, because an object refers to the image and `#override` does not
   * apply
   */
  async #mark(
    image: VMDiskImage,
    message: string,
    context: ReconcileContext<VMDiskImage>,
  ): Promise<VMDiskImage | undefined> {
    if (image.status?.deletionStartedAt !== undefined) return image;
    if (!(await this.#isUnreferenced(image, context))) return this.#override(image, context);
    const { status } = deleting(image, { state: 'progressing', message }, context.now());
    const marked = await context.setStatus(image, { ...status, phase: 'Deleting' });
    if (!(await this.#isUnreferenced(marked, context))) return this.#override(marked, context);
    const deletionStartedAt = timeOf(context.now());
    return context.setStatus(marked, { ...marked.status, deletionStartedAt });
  }

  /**
   * Begins the deletion of a referenced image if Kubernetes itself deletes its data (`overrideCause`). An image
   * without data is of no use. It would only be an obstacle to the deletion of its namespace, and to VirtualMachines
   * that wait until the image can be created again.
   * @returns undefined if Kubernetes does not delete the data
   */
  async #override(
    image: VMDiskImage,
    { client, setStatus, event, now }: ReconcileContext<VMDiskImage>,
  ): Promise<VMDiskImage | undefined> {
    const cause = await overrideCause(image, client);
    if (cause === undefined) return undefined;
    const { caches, limits } = this.#options;
    const users = listReferrers(countReferences(usersOf(image, caches, limits)), NAMED_REFERRERS);
    const message = `Deleting the image, because ${cause}, although it is used by ${users}`;
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
    const remaining = cached.length > 0 ? cached : await unseenClaim(image, caches, client);
    if (remaining.length > 0) {
      const message = `Waiting until these objects are deleted: ${remaining.join(', ')}`;
      await setStatus(image, deleting(image, { state: 'progressing', message }, now()).status);
      return requeueAfter(REMAINING_MS);
    }
    await slots.release(image.metadata.uid ?? '', client);
    return undefined;
  }

  /**
   * Removes the owner reference from the children, so that the garbage collector keeps them. The children are first
   * listed from etcd. Otherwise, a child that the caches lack would keep its owner reference, and be deleted with the
   * image.
   */
  async #orphan(image: VMDiskImage, { client, signal, log }: ReconcileContext<VMDiskImage>): Promise<Result> {
    const { caches, slots } = this.#options;
    const refreshed = [caches.get(DataVolume).refresh(signal), caches.get(VolumeSnapshot).refresh(signal)];
    const unlistable = (await Promise.all(refreshed)).flat();
    const { namespace: own = '' } = image.metadata;
    if (unlistable.includes(own))
      throw new Error(
        `the children of the image cannot be listed in the namespace ${own}, so the image is not removed`,
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
    const newest = context.cache(VMDiskImage).get(context.key); // newer than `found` if this reconcile wrote the status
    const image = newest !== undefined && newest.metadata.uid === found.metadata.uid ? newest : found;
    const result = await this.#options.reconcile(image, context);
    return requeueAfter(Math.min(result?.requeueAfterMs ?? REFERENCED_MS, REFERENCED_MS));
  }
}

/**
 * Returns why Kubernetes deletes the data of an image even if the image is in use; undefined if Kubernetes does not
 * delete it.
 */
async function overrideCause(image: VMDiskImage, client: Pick<Client, 'get'>): Promise<string | undefined> {
  if (image.metadata.finalizers?.includes(FOREGROUND))
    return 'its deletion in the foreground deletes its data';
  return (await isNamespaceTerminating(image, client)) ? 'its namespace is being deleted' : undefined;
}

/**
 * Returns a list with the claim of the image's disk. The list is empty if the claim does not exist, or is not deleted
 * with the image. Reads from the API server, because the watch may not have delivered the claim yet.
 */
async function unseenClaim(
  image: VMDiskImage,
  caches: Caches,
  client: Pick<Client, 'get'>,
): Promise<readonly string[]> {
  const { metadata, status } = image;
  if (status?.dataVolume === undefined) return [];
  const ref = { namespace: metadata.namespace, name: status.dataVolume };
  const claim = await ignoreNotFound(client.get(PersistentVolumeClaim, ref));
  return claim === undefined || !isDeletedWith(image, claim, caches) ? [] : [claimText(claim)];
}

function claimText({ metadata }: PersistentVolumeClaim): string {
  return `PersistentVolumeClaim ${keyOf(metadata)}`;
}
