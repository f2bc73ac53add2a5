import type { BackoffOptions, Logger, Manager, ObjectCache, Tracer, World } from '@vmwright/runtime';
import type { Database } from './database.ts';
import { type DeadLetter, DeadLetters } from './dead-letters.ts';
import type { StatusMapping } from './mapping.ts';
import { MirrorMetrics } from './metrics.ts';
import type { PlanOptions } from './plan.ts';
import { Reporter } from './reporter.ts';
import { Term } from './term.ts';
import { leanVirtualMachine, VirtualMachine } from './virtual-machine.ts';
import { indexByVapp, VAPP_INDEX } from './vm-rows.ts';

export interface MirrorOptions extends PlanOptions {
  readonly world: World;
  readonly log: Logger;
  /** Records batches as spans. @default no tracing */
  readonly tracer?: Tracer | undefined;
  readonly database: Database;
  readonly mapping: StatusMapping;
  /** Maximum number of batches in flight. */
  readonly workers: number;
  /** Back-off after failures of the database and, separately for each row, after failed writes. */
  readonly backoff: BackoffOptions;
  /** Interval between two comparisons of the whole table with the whole cluster, ± 10 %. */
  readonly resyncMs: number;
  /**
   * Whether to take shards from the session of another replica, such as an earlier leader. False if only one replica
   * runs.
   */
  readonly takesOver: boolean;
  readonly statusEvents: boolean;
  /** Watched namespaces. @default all */
  readonly namespaces?: readonly string[] | undefined;
}

/** State of the mirror, for `/health/controller`. */
export interface MirrorHealth {
  readonly isConnected: boolean;
  readonly pending: number;
  readonly lagSeconds: number;
  readonly deadLetters: number;
}

/** Mirrors the status of every KubeVirt VM into the table `vms` of a PostgreSQL database. */
export class Mirror {
  readonly #vms: ObjectCache<VirtualMachine>;
  readonly #deadLetters: DeadLetters;
  #term: Term | undefined;

  /** Adds the mirror to a manager. */
  constructor(manager: Manager, options: MirrorOptions) {
    const { world, log, statusEvents } = options;
    this.#deadLetters = new DeadLetters(world);
    this.#vms = manager.caches.get(VirtualMachine, {
      transform: leanVirtualMachine,
      initialList: 'pages', // one response with all VMs could be too large
      indexers: { [VAPP_INDEX]: indexByVapp },
    });
    const metrics = new MirrorMetrics(manager.registry, () => ({
      pending: this.#term?.pending ?? 0,
      oldestPendingSeconds: (this.#term?.oldestPendingMs ?? 0) / 1_000,
      deadLetters: this.#deadLetters.size,
      duplicateRows: this.#term?.duplicateRows ?? 0,
      withoutRow: this.#term?.withoutRow ?? 0,
      isConnected: this.#term?.isConnected ?? false,
      lastComparisonSeconds: (this.#term?.lastComparisonAt ?? 0) / 1_000,
    }));
    manager.showOperations('vm-status', () => this.#term?.inFlight ?? []);
    this.#vms.subscribe((event) => this.#term?.onChange(event));
    manager.add({
      name: 'vm-status',
      reads: [VirtualMachine],
      run: async (context) => {
        const reporter = new Reporter({ world, log, metrics, statusEvents, event: context.event });
        this.#deadLetters.clear();
        const [vms, deadLetters] = [this.#vms, this.#deadLetters];
        const term = new Term({ ...options, vms, context, reporter, deadLetters });
        this.#term = term;
        try {
          await term.run();
        } finally {
          this.#term = undefined;
        }
      },
    });
  }

  get health(): MirrorHealth {
    return {
      isConnected: this.#term?.isConnected ?? false,
      pending: this.#term?.pending ?? 0,
      lagSeconds: (this.#term?.oldestPendingMs ?? 0) / 1_000,
      deadLetters: this.#deadLetters.size,
    };
  }

  get deadLetters(): readonly DeadLetter[] {
    return this.#deadLetters.list();
  }
}
