import type { Logger, Registry, World } from '@vmwright/core';
import type { Kind } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';
import type { JobContext } from '../manager/job.ts';
import type { Manager } from '../manager/manager.ts';
import type { ExternalChange, ExternalResources } from './external-resources.ts';
import { OrphanReport } from './orphan-report.ts';
import { findOrphans, uidsOf } from './orphans.ts';
import { removeOrphan } from './remove-orphan.ts';
import { WitnessedDeletions } from './witnessed-deletions.ts';

export interface CollectorOptions<T> {
  /** Name of the job: `vm-gc`. */
  readonly name: string;
  /** Prefix of the metrics `<prefix>_orphans` and `<prefix>_swept_total`. */
  readonly metricPrefix: string;
  readonly kind: Kind;
  readonly external: ExternalResources<T>;
  readonly world: Pick<World, 'monotonic'>;
  readonly everyMs: number;
  /** Milliseconds for which an external resource must be found without an owner before it is deleted or reported. */
  readonly graceMs: number;
  /** Namespaces that the program watches. @default all */
  readonly namespaces?: readonly string[] | undefined;
  /**
   * Called with the last known state of a deleted object. Returns whether the external resources of the object should
   * be deleted too. If not, they are reported and never deleted.
   */
  readonly deletesExternal: (object: KubeObject) => boolean;
  /**
   * Called to log a change of a collected resource, as soon as the backend has accepted the change.
   * @default logs a warning about each deletion
   */
  readonly onChange?: (item: T, change: ExternalChange, log: Logger) => void;
  /** Text that tells the user how to list all orphans; appended to the log line about new ones. @default nothing */
  readonly hint?: string;
}

/**
 * Adds a job that deletes external resources which outlive their owner. They exist because a delayed create request can
 * reach the backend after the finalizer of the owner was removed.
 *
 * Guarantees: an external resource is deleted only if all of these hold:
 * - Its owner does not exist.
 * - This process witnessed the deletion of the owner (`WitnessedDeletions`), or the resource records it
 *   (`outlivedOwner`).
 * - No user took the resource over (`isHeld`).
 *
 * Any other resource without an owner is reported and never deleted. The cluster may have been rebuilt, restored from a
 * backup, or copied. The owner may then be restored, or may exist in another cluster.
 */
export function collectGarbage<T>(manager: Manager, options: CollectorOptions<T>): void {
  const { name, metricPrefix, kind, world, everyMs, deletesExternal } = options;
  const cache = manager.caches.get<KubeObject>(kind);
  const deletions = new WitnessedDeletions({ cache, world, deletesExternal });
  const metrics = collectorMetrics(manager.registry, metricPrefix, kind);
  const collector = new Collector(options, deletions, metrics);
  manager.job({
    name,
    everyMs,
    reads: [kind],
    run: (context) => collector.run(context),
  });
}

/** Declares the metrics of garbage collection. @param prefix prefix of their names */
export function collectorMetrics(registry: Registry, prefix: string, { kind }: Kind): CollectorMetrics {
  return {
    orphans: registry
      .gauge({
        name: `${prefix}_orphans`,
        help: `External resources that belong to no ${kind}, as last listed.`,
      })
      .with({}),
    collected: registry
      .counter({
        name: `${prefix}_swept_total`,
        help: `External resources that were created after their ${kind} was deleted, and were deleted by garbage collection.`,
      })
      .with({}),
  };
}

/** Whether an external resource without an owner may be deleted. */
export function isCollectable<T>(
  item: T,
  { ownerOf, outlivedOwner, isHeld }: Pick<ExternalResources<T>, 'ownerOf' | 'outlivedOwner' | 'isHeld'>,
  deletions: Pick<WitnessedDeletions, 'has'>,
): boolean {
  if (isHeld?.(item)) return false;
  return outlivedOwner?.(item) === true || deletions.has(ownerOf(item)?.uid ?? '');
}

/** Receives the results of garbage collection, for metrics. */
export interface CollectorMetrics {
  readonly orphans: { set(value: number): void };
  readonly collected: { inc(): void };
}

class Collector<T> {
  readonly #options: CollectorOptions<T>;
  readonly #deletions: WitnessedDeletions;
  readonly #metrics: CollectorMetrics;
  readonly #report: OrphanReport<T>;
  /** Time at which each resource was first found without an owner, by its id. */
  #since = new Map<string, number>();
  #loggedForbidden = '';

  constructor(options: CollectorOptions<T>, deletions: WitnessedDeletions, metrics: CollectorMetrics) {
    this.#options = options;
    this.#deletions = deletions;
    this.#metrics = metrics;
    this.#report = new OrphanReport(options);
  }

  async run(context: JobContext): Promise<void> {
    const { kind, external, namespaces } = this.#options;
    const { client, cache, signal } = context;
    // `findOrphans` lists the objects from the API server only if the owner of a resource is not among the cached UIDs.
    const known = new Set(uidsOf(cache<KubeObject>(kind).list()));
    const found = await findOrphans({ client, kind, external, namespaces, known, signal });
    this.#logForbidden(found.forbidden, context);
    this.#metrics.orphans.set(found.orphans.length);
    const due = this.#due(found.orphans);
    const isWitnessed = (item: T) => isCollectable(item, external, this.#deletions);
    this.#report.update(
      due.filter((item) => !isWitnessed(item)),
      context,
    );
    for (const item of due.filter(isWitnessed)) await this.#collect(item, found.isOrphan, context);
  }

  #due(orphans: readonly T[]): readonly T[] {
    const { external, world, graceMs } = this.#options;
    const now = world.monotonic();
    const sinceOf = (item: T) => this.#since.get(external.idOf(item)) ?? now;
    this.#since = new Map(orphans.map((item) => [external.idOf(item), sinceOf(item)]));
    return orphans.filter((item) => now - sinceOf(item) >= graceMs);
  }

  async #collect(item: T, isOrphan: (item: T) => boolean, context: JobContext): Promise<void> {
    const {
      kind,
      external,
      onChange = (newest, change) => this.#log(newest, change, context),
    } = this.#options;
    const { signal, log, assertLeader } = context;
    const id = external.idOf(item);
    this.#deletions.touch(external.ownerOf(item)?.uid ?? '');
    try {
      const isDeleted = await removeOrphan({
        item,
        external,
        signal,
        assertLeader,
        isRemovable: (newest) => isOrphan(newest) && isCollectable(newest, external, this.#deletions),
        onChange: (newest, change) => onChange(newest, change, log),
      });
      if (isDeleted) this.#metrics.collected.inc();
    } catch (error) {
      signal.throwIfAborted();
      assertLeader(); // ends the run when this process no longer leads
      // An orphan that cannot be deleted does not block the others.
      log.error({ id, error: String(error) }, `Deleting an orphan of a ${kind.kind} failed, retrying`);
    }
  }

  #log(item: T, { type, task }: ExternalChange, { log }: JobContext): void {
    if (type !== 'delete') return;
    const { kind, external } = this.#options;
    const what = external.describe(item);
    log.warn({ id: external.idOf(item), task }, `Deleting ${what}, which has outlived its ${kind.kind}`);
  }

  #logForbidden(forbidden: readonly string[], { log }: JobContext): void {
    const namespaces = forbidden.join(', ');
    if (namespaces !== '' && namespaces !== this.#loggedForbidden)
      log.warn(
        { namespaces },
        `${this.#options.kind.kind} objects cannot be listed in these namespaces; their orphans are neither deleted nor reported`,
      );
    this.#loggedForbidden = namespaces;
  }
}
