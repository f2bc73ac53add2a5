import type { Registry } from '@vmwright/runtime';
import { FAILURE_REASONS, type FailureReason } from './errors.ts';
import type { SyncQueue } from './sync-queue.ts';

/** Metrics of the controller of VMDiskImages. */
export interface ImageMetrics {
  pruned(): void;
  failed(reason: FailureReason): void;
}

/** Declares the metrics. All series exist from the start, so that a rate over the first failure is correct. */
export function imageMetrics(registry: Registry, queue: Pick<SyncQueue, 'count'>): ImageMetrics {
  const syncing = registry.gauge({
    name: 'vmwright_image_syncs',
    help: 'VMDiskImages that are being synced. Every replica reports the same total',
  });
  const queued = registry.gauge({
    name: 'vmwright_image_sync_queue',
    help: 'VMDiskImages that wait because of --image-sync-concurrency. Every replica reports the same total',
  });
  const pruned = registry.counter({
    name: 'vmwright_images_pruned_total',
    help: 'VMDiskImages that the operator deleted because nothing used them (spec.retention.pruneAfter, --image-prune-after)',
  });
  const failures = registry.counter({
    name: 'vmwright_image_sync_failures_total',
    help: 'Failed attempts to sync a VMDiskImage, by reason',
    labels: ['reason'],
  });
  for (const reason of FAILURE_REASONS) failures.with({ reason });
  registry.beforeText(() => {
    syncing.with({}).set(queue.count('Syncing'));
    queued.with({}).set(queue.count('Queued'));
  });
  pruned.with({});
  return { pruned: () => pruned.with({}).inc(), failed: (reason) => failures.with({ reason }).inc() };
}
