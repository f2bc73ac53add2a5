import type { Flag } from './flags.ts';
import { type Environment, parseInteger, parseList, parseTime } from './values.ts';

/** Settings of the controllers of VirtualMachine and VMDiskImage. */
export interface KubevirtSettings {
  /**
   * Namespaces whose images VirtualMachines of other namespaces may use and create. @default all
   */
  readonly imageNamespaces: readonly string[] | undefined;
  readonly syncs: SyncSettings;
  /** Time after which an unreferenced image is deleted, unless the image specifies its own. */
  readonly pruneAfterMs: number;
  /** Number of VirtualMachines, and also of VMDiskImages, that are reconciled at the same time. */
  readonly concurrency: number;
}

/** Limits of the imports of images. */
export interface SyncSettings {
  /** Maximum number of images that are synced at the same time. */
  readonly concurrency: number;
  /** Maximum back-off between two attempts. */
  readonly maxBackoffMs: number;
  /** Maximum time from the start of the first attempt, after which the image fails. */
  readonly maxTotalMs: number;
  /** Maximum time of one attempt, from its start. */
  readonly maxAttemptMs: number;
  /** Maximum number of restarts of the importer in one attempt. */
  readonly maxRestarts: number;
  /** Time without progress after which the status names the object that blocks the import. */
  readonly stalledAfterMs: number;
}

/** @throws SettingsError */
export function parseKubevirtSettings(
  text: (flag: Flag) => string,
  environment: Environment,
): KubevirtSettings {
  const time = (flag: Flag, variable: string) => parseTime(flag, environment[variable] || text(flag), 1);
  const count = (flag: Flag, variable: string, least: number) =>
    parseInteger(flag, environment[variable] || text(flag), least, 10_000);
  return {
    imageNamespaces: parseList(text('image-namespaces')),
    syncs: {
      concurrency: count('image-sync-concurrency', 'MAX_VMDI_SYNC_CONCURRENCY', 1),
      maxBackoffMs: time('image-sync-max-backoff', 'MAX_SYNC_RETRY_BACKOFF_DURATION'),
      maxTotalMs: time('image-sync-timeout', 'MAX_SYNC_DURATION'),
      maxAttemptMs: time('image-sync-attempt-timeout', 'MAX_SYNC_ATTEMPT_DURATION'),
      maxRestarts: count('image-sync-restarts', 'MAX_SYNC_ATTEMPT_RETRIES', 0),
      stalledAfterMs: parseTime('image-stalled-after', text('image-stalled-after')),
    },
    pruneAfterMs: parseTime('image-prune-after', text('image-prune-after')),
    concurrency: parseInteger('kubevirt-concurrency', text('kubevirt-concurrency'), 1, 1_000),
  };
}
