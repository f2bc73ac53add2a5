import { type EventInput, type Logger, messageOf, type RunnableContext, type World } from '@vmwright/runtime';
import type { WriteResult } from './batch.ts';
import { DatabaseError } from './database.ts';
import { EventLimiter } from './event-limiter.ts';
import type { MirrorMetrics, Trigger } from './metrics.ts';
import type { PlannedWrite } from './plan.ts';
import type { Row } from './rows.ts';
import { VirtualMachine } from './virtual-machine.ts';

export interface ReporterOptions {
  readonly world: Pick<World, 'monotonic'>;
  readonly log: Logger;
  readonly metrics: MirrorMetrics;
  /** Whether to record an event for each status that is written. */
  readonly statusEvents: boolean;
  readonly event: RunnableContext['event'];
}

/** Reports the results of the mirror as metrics, log lines and Kubernetes events. */
export class Reporter {
  readonly #options: ReporterOptions;
  readonly #limiter: EventLimiter;

  constructor(options: ReporterOptions) {
    this.#options = options;
    this.#limiter = new EventLimiter(options.world);
  }

  sessionOpened(): void {
    this.#options.metrics.sessions.inc();
  }

  databaseFailed({ code }: DatabaseError): void {
    this.#options.metrics.failed('', code);
  }

  batchWritten(rows: number): void {
    this.#options.metrics.batchRows.observe(rows);
  }

  wrote(namespace: string, status: string, result: WriteResult, ms: number): void {
    this.#options.metrics.wrote(namespace, status, result, ms);
  }

  unrecognizedStatus(): void {
    this.#options.metrics.unrecognized.inc();
  }

  /**
   * Reports a status that was written to a row.
   * @param lagMs time since the change of the VM arrived; undefined if no change of the VM caused the write
   */
  committed(
    vm: VirtualMachine | undefined,
    { row, status }: PlannedWrite,
    lagMs: number | undefined,
    trigger: Trigger | undefined,
  ): void {
    const { metrics, log, statusEvents } = this.#options;
    if (lagMs !== undefined) metrics.lag.observe(lagMs / 1_000);
    if (trigger !== undefined) metrics.corrected(trigger);
    const { namespace, vmName, id, status: oldStatus } = row;
    log.debug({ vm: vmName, namespace, oldStatus, newStatus: status, vmID: id }, 'Updated VM status');
    if (vm !== undefined && statusEvents)
      this.#event(vm, { type: 'Normal', reason: 'StatusUpdated', note: `VM status updated to ${status}` });
  }

  writeFailed(vm: VirtualMachine | undefined, { namespace, vmName, id }: Row, error: unknown): void {
    const { metrics, log } = this.#options;
    const reason = error instanceof DatabaseError ? error.code : 'UNKNOWN';
    metrics.failed(namespace, reason);
    log.debug({ vm: vmName, namespace, vmID: id, error: messageOf(error) }, 'Failed to update VM status');
    if (vm === undefined) return;
    const note = `Failed to update VM status in database: ${messageOf(error)}; retrying`;
    this.#event(vm, { type: 'Warning', reason: 'DatabaseUpdateFailed', note }, `${namespace}/${vmName}`);
  }

  deadLetter(vm: VirtualMachine | undefined, { namespace, vmName, id }: Row, error: DatabaseError): void {
    const { metrics, log } = this.#options;
    metrics.failed(namespace, error.code);
    log.error(
      { vm: vmName, namespace, vmID: id, error: error.message },
      'Row keeps failing; it is retried slowly and listed at /dead-letters',
    );
    if (vm === undefined) return;
    const note = `Failed to update VM status repeatedly: ${error.message}; retrying slowly`;
    this.#event(vm, { type: 'Warning', reason: 'ReconciliationFailed', note });
  }

  duplicateRows(vm: string, row: Row | undefined, older: readonly Row[]): void {
    this.#options.log.warn(
      { vm, newest: row?.id, older: older.map(({ id }) => id) },
      'Several rows describe this VM; only the newest row is updated',
    );
  }

  #event(vm: VirtualMachine, input: EventInput, series?: string): void {
    if (this.#limiter.tryAcquire(series)) this.#options.event(VirtualMachine, vm, input);
    else this.#options.metrics.droppedEvents.inc();
  }
}
