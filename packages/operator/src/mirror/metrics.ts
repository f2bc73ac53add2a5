import { type Counter, exponentialBuckets, type Histogram, type Registry } from '@vmwright/runtime';
import type { WriteResult } from './batch.ts';

/** Reason for a comparison of the whole table with the whole cluster. */
export type Trigger = 'start' | 'resync';

/** Maximum number of namespaces with series of their own; all further namespaces share the label value `other`. */
const MAX_NAMESPACES = 1_000;

/** Value of the label `result` by the result of a write. */
const RESULTS: Readonly<Record<WriteResult['type'], string>> = {
  written: 'success',
  unchanged: 'unchanged',
  skipped: 'error',
  rejected: 'error',
};

/** Metrics of the mirror. The number of label values is limited: names of VMs are never label values. */
export class MirrorMetrics {
  readonly #updates;
  readonly #durations;
  readonly #errors;
  readonly #corrections;
  readonly #namespaces = new Map<string, { readonly duration: Histogram }>();
  readonly #updatesBySeries = new Map<string, Counter>();
  readonly lag: Histogram;
  readonly batchRows: Histogram;
  readonly unrecognized: Counter;
  readonly droppedEvents: Counter;
  readonly sessions: Counter;

  /** @param read returns the values of the gauges, called at each scrape */
  constructor(registry: Registry, read: () => MirrorGauges) {
    this.#updates = registry.counter({
      name: 'ssvirt_vm_status_updates_total',
      help: 'Total number of VM status updates by result: success, unchanged (the row already had the status) or error',
      labels: ['namespace', 'status', 'result'],
    });
    this.#durations = registry.histogram({
      name: 'ssvirt_vm_status_update_duration_seconds',
      help: 'Time in seconds from the start of a batch of VM status updates to the result of each update',
      labels: ['namespace'],
      buckets: exponentialBuckets(0.001, 2, 14),
    });
    this.#errors = registry.counter({
      name: 'ssvirt_vm_reconcile_errors_total',
      help: 'Total number of failed writes and failed database connections by SQLSTATE or system error code. The label namespace is empty for connections',
      labels: ['namespace', 'error_type'],
    });
    this.#corrections = registry.counter({
      name: 'ssvirt_vm_corrections_total',
      help: 'Rows that were corrected after a comparison of the table with the cluster. The trigger start is a comparison after a new database session, resync a periodic one. The number for resync should stay 0',
      labels: ['trigger'],
    });
    for (const trigger of ['start', 'resync'] as const) this.#corrections.with({ trigger });
    this.lag = registry
      .histogram({
        name: 'ssvirt_vm_status_lag_seconds',
        help: 'Time in seconds from the arrival of a change of a VM to the commit of the row of the VM',
        buckets: exponentialBuckets(0.001, 2, 18),
      })
      .with({});
    this.batchRows = registry
      .histogram({
        name: 'ssvirt_vm_batch_rows',
        help: 'Number of rows in each batch that is written to the database',
        buckets: exponentialBuckets(1, 4, 7),
      })
      .with({});
    this.unrecognized = registry
      .counter({
        name: 'ssvirt_vm_unrecognized_status_total',
        help: 'Number of times that a VM with a row began to report a status.printableStatus that the status mapping lacks',
      })
      .with({});
    this.droppedEvents = registry
      .counter({
        name: 'ssvirt_vm_events_dropped_total',
        help: 'Kubernetes events that were not recorded because of the rate limit',
      })
      .with({});
    this.sessions = registry
      .counter({
        name: 'ssvirt_database_sessions_total',
        help: 'Sessions with the database that were opened',
      })
      .with({});
    const gauges = Object.entries(GAUGES).map(([key, options]) => ({
      key,
      gauge: registry.gauge(options).with({}),
    }));
    registry.beforeText(() => {
      const values = new Map(Object.entries(read()));
      for (const { key, gauge } of gauges) gauge.set(Number(values.get(key)));
    });
  }

  /** Counts the result of a write. @param ms time from the start of the batch to its result */
  wrote(namespace: string, status: string, result: WriteResult, ms: number): void {
    const label = this.#label(namespace);
    const series = `${label}/${status}/${result.type}`;
    let updates = this.#updatesBySeries.get(series);
    if (updates === undefined) {
      updates = this.#updates.with({ namespace: label, status, result: RESULTS[result.type] });
      this.#updatesBySeries.set(series, updates);
    }
    updates.inc();
    this.#namespaces.get(label)?.duration.observe(ms / 1_000);
  }

  /** @param type SQLSTATE or system error code */
  failed(namespace: string, type: string): void {
    this.#errors.with({ namespace: this.#label(namespace), error_type: type }).inc();
  }

  corrected(trigger: Trigger): void {
    this.#corrections.with({ trigger }).inc();
  }

  #label(namespace: string): string {
    if (this.#namespaces.has(namespace)) return namespace;
    const label = this.#namespaces.size < MAX_NAMESPACES ? namespace : 'other';
    if (!this.#namespaces.has(label))
      this.#namespaces.set(label, { duration: this.#durations.with({ namespace: label }) });
    return label;
  }
}

const GAUGES = {
  pending: { name: 'ssvirt_vm_pending', help: 'VMs with a change that is not committed yet' },
  oldestPendingSeconds: {
    name: 'ssvirt_vm_oldest_pending_seconds',
    help: 'Age in seconds of the oldest change that is not committed to the database yet, without dead letters; 0 if there is none',
  },
  deadLetters: {
    name: 'ssvirt_vm_dead_letters',
    help: 'Rows with at least 5 consecutive failed writes; see GET /dead-letters',
  },
  duplicateRows: {
    name: 'ssvirt_vm_duplicate_rows',
    help: 'VMs that several rows describe; only the newest row is updated',
  },
  withoutRow: { name: 'ssvirt_vm_without_row', help: 'VMs that no row describes' },
  isConnected: {
    name: 'ssvirt_database_up',
    help: 'Whether a session with the database is open (1) or not (0)',
  },
  lastComparisonSeconds: {
    name: 'ssvirt_last_comparison_timestamp_seconds',
    help: 'Time of the last comparison of the table with the cluster, in seconds since 1970; 0 before the first',
  },
} as const;

/** Values of the gauges at one moment. Booleans become 0 and 1. */
export type MirrorGauges = Readonly<Record<keyof typeof GAUGES, number | boolean>>;
