import type { CacheEvent } from '@vmwright/runtime';
import { deletionPolicyOf, isPaused } from '../annotations.ts';
import type { VMDiskImage } from './resource.ts';

/** An image that needs a sync slot, or holds one. */
export interface QueuedImage {
  readonly uid: string;
  /** `namespace/name` */
  readonly key: string;
  readonly phase: 'Queued' | 'Syncing';
  /** Time when a Queued image entered the queue, or when the attempt of a Syncing image began. */
  readonly queuedAt: string;
}

/**
 * Syncing images, and Queued images that can be synced, in the order in which they get sync slots. Follows the cache of
 * images.
 */
export class SyncQueue {
  readonly #images = new Map<string, QueuedImage>();
  #sorted: readonly QueuedImage[] | undefined;

  /** Updates the queue. @returns whether an image left the queue; if so, another image may be next */
  update({ type, key, object }: Pick<CacheEvent<VMDiskImage>, 'type' | 'key' | 'object'>): boolean {
    const before = this.#images.get(key);
    const after = type === 'removed' ? undefined : queuedImage(key, object);
    if (after === undefined) this.#images.delete(key);
    else this.#images.set(key, after);
    this.#sorted = undefined;
    return before !== undefined && after?.uid !== before.uid;
  }

  /**
   * All images in the order in which they get slots. Syncing images come first, so that a Syncing image gets its slot
   * back after a user has removed the slot.
   */
  get images(): readonly QueuedImage[] {
    this.#sorted ??= [...this.#images.values()].toSorted(inOrder);
    return this.#sorted;
  }

  count(phase: QueuedImage['phase']): number {
    return this.images.filter((image) => image.phase === phase).length;
  }
}

/**
 * Returns the queue entry of an image; undefined if the image needs no slot now.
 *
 * A Queued image has no entry while it cannot be synced. Otherwise, it would block the next image. It cannot be synced
 * in these cases:
 * - It is paused.
 * - It is being deleted, and a user has to correct its deletion policy.
 * - Children of its last attempt still exist (no `queuedAt`).
 */
function queuedImage(key: string, image: VMDiskImage): QueuedImage | undefined {
  const { metadata, status } = image;
  if (status?.phase === 'Syncing')
    return { uid: metadata.uid ?? '', key, phase: 'Syncing', queuedAt: status.attempt?.startedAt ?? '' };
  const isHeld = metadata.deletionTimestamp !== undefined && typeof deletionPolicyOf(image) === 'object';
  if (status?.phase !== 'Queued' || status.queuedAt === undefined || isPaused(image) || isHeld)
    return undefined;
  return { uid: metadata.uid ?? '', key, phase: 'Queued', queuedAt: status.queuedAt };
}

function inOrder(a: QueuedImage, b: QueuedImage): number {
  if (a.phase !== b.phase) return a.phase === 'Syncing' ? -1 : 1;
  if (a.queuedAt !== b.queuedAt) return a.queuedAt < b.queuedAt ? -1 : 1;
  return a.key < b.key ? -1 : 1;
}
