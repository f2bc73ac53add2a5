import type { JobContext, Kind, KubeObject, Manager, World } from '@vmwright/runtime';
import { WitnessedDeletions } from './deletions.ts';
import type { ExternalResources } from './external.ts';
import { findOrphans, uidsOf } from './orphans.ts';
import { OrphanReport } from './report.ts';

export interface CollectorOptions<T> {
  /** In the names of the job and its metrics: `vm`. */
  readonly name: string;
  readonly kind: Kind;
  readonly external: ExternalResources<T>;
  readonly world: Pick<World, 'monotonic'>;
  readonly everyMs: number;
  /** How long an external resource must have had no owner before it is collected or reported. */
  readonly graceMs: number;
  /** Namespaces that the operator watches. @default all */
  readonly namespaces?: readonly string[] | undefined;
}

/**
 * Adds a job that deletes external resources which were created late: a request to create one can reach the backend after
 * its owner was deleted, when no reconcile waits for it any more.
 *
 * Guarantees: an external resource is deleted only when its owner does not exist and the owner's deletion was witnessed by
 * this process (`WitnessedDeletions`)
 * or is recorded on the resource (`outlivedOwner`), and people did not take the resource over (`isHeld`). Everything else
 * without an owner is reported and never deleted: the cluster may have been rebuilt, restored from a backup, or copied,
 * and the owner may come back or live elsewhere. See docs/decisions/015-garbage-collection.md.
 */
export function collectGarbage<T>(manager: Manager, options: CollectorOptions<T>): void {
  const { name, kind, world, everyMs } = options;
  const deletions = new WitnessedDeletions({ cache: manager.caches.get(kind), world });
  const metrics = {
    orphans: manager.registry
      .gauge({
        name: `vmwright_${name}_orphans`,
        help: `External resources with our ownership labels that belong to no ${kind.kind}, as last seen.`,
      })
      .with({}),
    collected: manager.registry
      .counter({
        name: `vmwright_${name}_swept_total`,
        help: `External resources that were created after their ${kind.kind} was deleted, and were deleted, too.`,
      })
      .with({}),
  };
  const collector = new Collector(options, deletions, metrics);
  manager.job({
    name: `${name}-sweeper`,
    everyMs,
    reads: [kind],
    run: (context) => collector.run(context),
  });
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

interface CollectorMetrics {
  readonly orphans: { set(value: number): void };
  readonly collected: { inc(): void };
}

class Collector<T> {
  readonly #options: CollectorOptions<T>;
  readonly #deletions: WitnessedDeletions;
  readonly #metrics: CollectorMetrics;
  readonly #report: OrphanReport<T>;
  /** By id: since when each has been without an owner. */
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
    // The cache saves a list where it explains everything. It never decides: it may lack an object that exists.
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
    const { kind, external } = this.#options;
    const { signal, log, assertLeader } = context;
    const id = external.idOf(item);
    this.#deletions.touch(external.ownerOf(item)?.uid ?? '');
    try {
      // It may have been orphaned on request, and lost its labels, since it was listed.
      const newest = await external.refetch(item, signal);
      if (newest === undefined || !isOrphan(newest)) return;
      if (!isCollectable(newest, external, this.#deletions)) return; // people took it over since it was listed
      log.warn({ id }, `Deleting ${external.describe(newest)}, which has outlived its ${kind.kind}`);
      await external.remove(newest, { signal, assertLeader });
      this.#metrics.collected.inc();
    } catch (error) {
      signal.throwIfAborted();
      assertLeader(); // a process that must not act any more stops here
      // One that cannot be deleted does not keep the others.
      log.error({ id, error: String(error) }, `Deleting an orphan of a ${kind.kind} failed, retrying`);
    }
  }

  #logForbidden(forbidden: readonly string[], { log }: JobContext): void {
    const namespaces = forbidden.join(', ');
    if (namespaces !== '' && namespaces !== this.#loggedForbidden)
      log.warn(
        { namespaces },
        `${this.#options.kind.kind} objects cannot be listed in these namespaces; orphans of theirs are neither collected nor reported`,
      );
    this.#loggedForbidden = namespaces;
  }
}
