import {
  AlreadyExistsError,
  type Caches,
  type KubeObject,
  NotFoundError,
  type ReconcileContext,
} from '@vmwright/runtime';
import { auditChild } from '../kubevirt/audit.ts';
import { DataVolume, VolumeSnapshot } from '../kubevirt/kinds.ts';
import { remove } from '../kubevirt/remove.ts';
import type { Child } from './cleanup.ts';
import { rejectionOf } from './errors.ts';
import type { ImageMetrics } from './metrics.ts';
import type { ImageLimits, Observed } from './observe.ts';
import type { Action } from './plan.ts';
import { countReferences, refreshUsers, usersOf } from './references.ts';
import { VMDiskImage } from './resource.ts';
import type { SyncSlots } from './sync-slots.ts';

const CREATE_VOLUME = { act: 'create', kind: DataVolume, reason: 'the image is not imported' } as const;
const CREATE_SNAPSHOT = {
  act: 'create',
  kind: VolumeSnapshot,
  reason: 'the image has no snapshot to clone',
} as const;

export interface ExecutorOptions {
  readonly caches: Caches;
  readonly slots: SyncSlots;
  readonly limits: ImageLimits;
  readonly metrics: ImageMetrics;
}

/**
 * Result of an action:
 * - an object: values for the next plan
 * - `wait`: the reconcile ends, because the caches do not show the result yet or the image could not be pruned
 * - `pruned`: the image was deleted
 */
export type Result = Partial<Pick<Observed, 'slot' | 'rejection'>> | 'wait' | 'pruned';

/** Executes the actions of plans. */
export class Executor {
  readonly #options: ExecutorOptions;

  constructor(options: ExecutorOptions) {
    this.#options = options;
  }

  async execute(action: Action, image: VMDiskImage, context: ReconcileContext<VMDiskImage>): Promise<Result> {
    const { client } = context;
    const { caches, slots } = this.#options;
    const { uid = '' } = image.metadata;
    switch (action.type) {
      case 'acquireSlot':
        return { slot: (await slots.acquire(uid, client)) ? 'held' : 'waiting' };
      case 'releaseSlot':
        await slots.release(uid, client);
        return { slot: 'none' };
      case 'createVolume':
        return created(image, 'DataVolumeRejected', client.create(DataVolume, action.volume), (child) =>
          auditChild(context.log, VMDiskImage, image, { ...CREATE_VOLUME, child }),
        );
      case 'createSnapshot':
        return created(image, 'SnapshotRejected', client.create(VolumeSnapshot, action.snapshot), (child) =>
          auditChild(context.log, VMDiskImage, image, { ...CREATE_SNAPSHOT, child }),
        );
      case 'delete':
        await deleteChild(action.child, image, 'it belongs to an attempt that has ended', context, caches);
        return {};
      case 'prune':
        return this.#prune(image, context);
    }
  }

  /**
   * Deletes an image if lists from etcd show that no object refers to it. If a reference appears after the lists, the
   * finalizer finds it before any data is deleted. Does not delete an image that has changed.
   */
  async #prune(
    image: VMDiskImage,
    { client, event, signal, log }: ReconcileContext<VMDiskImage>,
  ): Promise<Result> {
    const { caches, limits, metrics } = this.#options;
    const unlistable = await refreshUsers(caches, signal);
    if (unlistable.length > 0) return 'wait';
    if (countReferences(usersOf(image, caches, limits)).count > 0) return {};
    const { uid, resourceVersion } = image.metadata;
    if (!(await remove(client, VMDiskImage, image.metadata, { uid, resourceVersion }))) return 'wait';
    const reason = 'no object refers to the image';
    auditChild(log, VMDiskImage, image, { act: 'collect', kind: VMDiskImage, child: image, reason });
    const since = image.status?.unreferencedSince;
    const note = `Deleted the image, because no object has referred to it since ${since}`;
    event(image, { type: 'Normal', reason: 'Pruned', note });
    metrics.pruned();
    return 'pruned';
  }
}

/**
 * Deletes a child. Its UID and version are preconditions. The UID protects another object of the same name. The version
 * protects a child that has lost its owner reference (`--cascade=orphan`). If the child is already gone, it is removed
 * from the cache, because the watch has not reported the deletion yet.
 * @throws ConflictError if the child has changed since it was cached
 */
export async function deleteChild(
  child: Child,
  image: VMDiskImage,
  reason: string,
  { client, log }: Pick<ReconcileContext<VMDiskImage>, 'client' | 'log'>,
  caches: Caches,
): Promise<void> {
  const { childKind, metadata } = child;
  const kind = childKind === 'DataVolume' ? DataVolume : VolumeSnapshot;
  const { uid, resourceVersion } = metadata;
  try {
    await client.delete(kind, metadata, { uid, resourceVersion, propagation: 'Background' });
    auditChild(log, VMDiskImage, image, { act: 'delete', kind, child, reason });
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
    caches.get<DataVolume | VolumeSnapshot>(kind).onDelete(metadata, uid ?? '');
  }
}

/** Waits for the creation of a child. If the API server rejects the child, the import attempt fails. */
async function created(
  image: VMDiskImage,
  reason: 'DataVolumeRejected' | 'SnapshotRejected',
  creation: Promise<KubeObject>,
  onCreated: (child: KubeObject) => void,
): Promise<Result> {
  try {
    onCreated(await creation);
    return {};
  } catch (error) {
    // An earlier reconcile or the previous leader created the child, and the watch has not delivered it yet.
    if (error instanceof AlreadyExistsError) return 'wait';
    const rejection = rejectionOf(image, reason, error);
    if (rejection === undefined) throw error;
    return { rejection };
  }
}
