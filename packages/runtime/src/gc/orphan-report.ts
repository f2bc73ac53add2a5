import type { Kind } from '../kind/kind.ts';
import type { JobContext } from '../manager/job.ts';
import type { ExternalResources } from './external-resources.ts';

export interface OrphanReportOptions<T> {
  readonly kind: Kind;
  readonly external: Pick<ExternalResources<T>, 'idOf' | 'describe' | 'ownerOf' | 'isHeld'>;
  /** Text that tells the user how to list all orphans; appended to the log line. @default nothing */
  readonly hint?: string | undefined;
}

/** Maximum number of orphans that one run lists in its log line and reports by events. */
const MOST_LISTED = 20;

/**
 * Reports each kept orphan once. A log line counts the new orphans and lists some of them. Each listed orphan also gets
 * a Warning event.
 */
export class OrphanReport<T> {
  readonly #options: OrphanReportOptions<T>;
  #reported: ReadonlySet<string> = new Set();

  constructor(options: OrphanReportOptions<T>) {
    this.#options = options;
  }

  /** @param orphans all orphans that exist now and are not deleted */
  update(orphans: readonly T[], { log, event }: Pick<JobContext, 'log' | 'event'>): void {
    const { kind, external, hint } = this.#options;
    const fresh = orphans.filter((item) => !this.#reported.has(external.idOf(item)));
    this.#reported = new Set(orphans.map((item) => external.idOf(item)));
    if (fresh.length === 0) return;
    const listed = fresh.slice(0, MOST_LISTED);
    log.warn(
      { orphans: orphans.length, new: fresh.length, ids: listed.map((item) => external.idOf(item)) },
      `Found external resources that belong to no ${kind.kind}; keeping them, because the operator did not observe the deletion of their ${kind.kind}, or a user took them over${hint === undefined ? '' : `. ${hint}`}`,
    );
    for (const item of listed) {
      const owner = external.ownerOf(item);
      if (owner === undefined) continue;
      // The event refers to the missing owner, so it is stored in the owner's namespace, where users look for it.
      const { uid, namespace, name } = owner;
      const why = external.isHeld?.(item)
        ? 'does not exist. The resource is kept, because a user moved it or turned it into a template; delete it by hand'
        : `does not exist, and the operator did not observe its deletion. The resource is kept; restore the ${kind.kind} with its UID, or delete the resource by hand`;
      event(
        kind,
        { metadata: { uid, name: name || uid, ...(namespace !== '' && { namespace }) } },
        {
          type: 'Warning',
          reason: 'Orphaned',
          action: 'GarbageCollect',
          note: `${external.describe(item)} (${external.idOf(item)}) belongs to a ${kind.kind} that ${why}`,
        },
      );
    }
  }
}
