import type { Flag } from './flags.ts';
import type { Sources } from './sources.ts';
import { parseInteger, parseList, parseTime } from './values.ts';

/** Settings of the controllers of VirtualMachine and VMDiskImage. */
export interface KubevirtSettings {
  /** Namespaces whose images VirtualMachines of other namespaces may use; `*` for all. */
  readonly imageNamespaces: readonly string[];
  /** Namespaces in which VirtualMachines of other namespaces may create images; `*` for all. */
  readonly imageCreationNamespaces: readonly string[];
  readonly syncs: SyncSettings;
  /** Time after which an unreferenced image is deleted, unless the image specifies its own time. */
  readonly pruneAfterMs: number;
  /** Maximum number of concurrent reconciles of VirtualMachines and, separately, of VMDiskImages. */
  readonly concurrency: number;
}

/** Limits of the imports of images. */
export interface SyncSettings {
  /** Maximum number of images that are synced at the same time. */
  readonly concurrency: number;
  /** Maximum back-off between two attempts. */
  readonly maxBackoffMs: number;
  /** Maximum total time of all attempts, from the start of the first. An image that is not synced by then fails. */
  readonly maxTotalMs: number;
  /** Maximum time of one attempt, from its start. */
  readonly maxAttemptMs: number;
  /** Maximum number of restarts of the importer in one attempt. */
  readonly maxRestarts: number;
  /** Time without progress after which the status names the object that blocks the import. */
  readonly stalledAfterMs: number;
}

/** @throws SettingsError */
export function parseKubevirtSettings({ text, name }: Sources): KubevirtSettings {
  const time = (flag: Flag) => parseTime(name(flag), text(flag), 1);
  const count = (flag: Flag, least: number) => parseInteger(name(flag), text(flag), least, 10_000);
  const namespaces = (flag: Flag) => parseList(text(flag)) ?? [];
  return {
    imageNamespaces: namespaces('image-namespaces'),
    imageCreationNamespaces: namespaces('image-creation-namespaces'),
    syncs: {
      concurrency: count('image-sync-concurrency', 1),
      maxBackoffMs: time('image-sync-max-backoff'),
      maxTotalMs: time('image-sync-timeout'),
      maxAttemptMs: time('image-sync-attempt-timeout'),
      maxRestarts: count('image-sync-restarts', 0),
      stalledAfterMs: time('image-stalled-after'),
    },
    pruneAfterMs: time('image-prune-after'),
    concurrency: parseInteger(name('kubevirt-concurrency'), text('kubevirt-concurrency'), 1, 1_000),
  };
}
