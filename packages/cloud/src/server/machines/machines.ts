import type { Logger } from '@vmwright/core';
import { type Clock, messageOf, wait } from '@vmwright/core';
import type { CloudMetrics } from '../metrics/cloud-metrics.ts';
import type { StoredServer } from '../store/rows.ts';
import type { StateChange, Store } from '../store/store.ts';
import type { Driver } from './driver.ts';

export interface MachinesOptions {
  readonly store: Pick<Store, 'all' | 'find' | 'updateStates' | 'remove' | 'setDeletionMessage'>;
  readonly driver: Driver;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Pick<CloudMetrics, 'operationFinished'>;
  /** Interval between two observations of all machines. */
  readonly observeEveryMs: number;
}

const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 30_000;

/**
 * Reconciles the driver with the store: starts the machines of building servers, stops those of deleting servers, and
 * stores the observed states.
 *
 * Guarantees: all state is in the store, so that `resume` continues the operations that a crash interrupted.
 */
export class Machines {
  readonly #options: MachinesOptions;
  /** Running reconciles by server id. */
  readonly #active = new Map<string, Promise<void>>();
  /** Ids of the started servers, which are observed periodically. */
  readonly #observed = new Set<string>();
  readonly #closing = new AbortController();
  #timer: { cancel(): void } | undefined;

  constructor(options: MachinesOptions) {
    this.#options = options;
  }

  /** Continues interrupted operations and starts the periodic observation. */
  resume(): void {
    for (const { id, state } of this.#options.store.all()) {
      if (state === 'running') this.#observed.add(id);
      else if (state !== 'failed') this.enqueue(id);
    }
    this.#scheduleObservation();
  }

  /** Reconciles a server after its stored state has changed. */
  enqueue(id: string): void {
    // A running reconcile does not miss the change: there is no await between its last read of the store and its end.
    if (this.#active.has(id) || this.#closing.signal.aborted) return;
    // The reconcile is added to `#active` before it starts. Otherwise, a reconcile that ends synchronously would be
    // added after it has removed itself, and would stay in `#active` forever.
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#active.set(id, promise);
    void this.#reconcile(id).finally(resolve);
  }

  /** Returns the CPU utilization in percent; 0 unless the server is running. */
  cpuUtilizationOf(server: StoredServer): number {
    return server.state === 'running' ? this.#options.driver.observe(server).cpuUtilization : 0;
  }

  /**
   * Stops observing and retrying, and aborts driver operations, which the next `resume` continues. Machines keep
   * running.
   */
  async close(): Promise<void> {
    this.#timer?.cancel();
    this.#closing.abort(new Error('the cloud is closing'));
    await Promise.allSettled(this.#active.values());
    await this.#options.driver.close();
  }

  async #reconcile(id: string): Promise<void> {
    const { store, log } = this.#options;
    let delay = FIRST_DELAY_MS;
    let started = false;
    try {
      for (;;) {
        const server = store.find(id);
        const toStop = server?.state === 'deleting';
        if (server === undefined || !(toStop || (server.state === 'building' && !started))) return;
        try {
          if (toStop) await this.#stop(server);
          else {
            await this.#start(server);
            started = true;
          }
        } catch (error) {
          if (this.#closing.signal.aborted) return;
          const message = messageOf(error);
          log.error(
            { id, name: server.name, error: message },
            `${toStop ? 'Removing' : 'Starting'} machine failed, retrying`,
          );
          if (toStop)
            this.#setDeletionMessage(
              server,
              `Removing the machine failed: ${message}; retrying automatically`,
            );
          await wait(this.#options.clock, delay, this.#closing.signal);
          delay = Math.min(delay * 2, MAX_DELAY_MS);
        }
      }
    } catch (error) {
      if (!this.#closing.signal.aborted)
        log.error(
          { id, error: messageOf(error) },
          'Reconciling machine failed, giving up until its next change',
        );
    } finally {
      this.#active.delete(id);
    }
  }

  async #start(server: StoredServer): Promise<void> {
    const { driver, store, metrics } = this.#options;
    const { id } = server;
    try {
      await driver.start(server, this.#closing.signal);
      metrics.operationFinished('start', 'success');
      this.#observed.add(id);
    } catch (error) {
      if (this.#closing.signal.aborted) throw error;
      metrics.operationFinished('start', 'error');
      store.updateStates([{ id, state: 'failed', message: messageOf(error) }]);
    }
  }

  async #stop(server: StoredServer): Promise<void> {
    const { driver, store, metrics } = this.#options;
    this.#observed.delete(server.id);
    try {
      await driver.stop(server, this.#closing.signal);
    } catch (error) {
      if (!this.#closing.signal.aborted) metrics.operationFinished('stop', 'error');
      throw error;
    }
    metrics.operationFinished('stop', 'success');
    store.remove(server.id);
  }

  #setDeletionMessage({ id, message }: StoredServer, next: string): void {
    if (message === next) return;
    try {
      this.#options.store.setDeletionMessage(id, next);
    } catch (error) {
      // The disk may be full. The error is not rethrown, because the removal must still be retried.
      this.#options.log.error(
        { id, error: messageOf(error) },
        'Could not store the error of a failed removal, retrying the removal',
      );
    }
  }

  #scheduleObservation(): void {
    this.#timer = this.#options.clock.after(this.#options.observeEveryMs, () => {
      try {
        this.#observeAll();
      } catch (error) {
        // The store failed. No change is lost, because the next observation sees the same changes again.
        this.#options.log.error(
          { error: messageOf(error) },
          'Storing observed machine states failed, retrying',
        );
      }
      this.#scheduleObservation();
    });
  }

  #observeAll(): void {
    const { store, driver } = this.#options;
    const changes: StateChange[] = [];
    for (const id of this.#observed) {
      const server = store.find(id);
      if (server?.state !== 'building' && server?.state !== 'running') {
        this.#observed.delete(id);
        continue;
      }
      const { state, message } = driver.observe(server);
      if (state !== 'building' && state !== server.state) changes.push({ id, state, message });
    }
    store.updateStates(changes);
  }
}
