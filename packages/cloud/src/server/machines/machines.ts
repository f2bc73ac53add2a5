import { type Clock, type Logger, messageOf, wait } from '@vmwright/core';
import type { CloudMetrics } from '../metrics/cloud-metrics.ts';
import type { StoredServer } from '../store/rows.ts';
import type { Change, Store } from '../store/store.ts';
import type { Driver } from './driver.ts';

export interface MachinesOptions {
  readonly store: Pick<Store, 'all' | 'find' | 'settle' | 'remove' | 'noteWhileDeleting'>;
  readonly driver: Driver;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Pick<CloudMetrics, 'operated'>;
  /** Between two looks at what has become of the machines. */
  readonly observeEveryMs: number;
}

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 30_000;

/**
 * Has the driver make what the store says: starts what is building, stops what is deleting, and stores what becomes of
 * them.
 *
 * Guarantees: the store is the only memory. Whatever was under way when the process ended is taken up again by `resume`.
 */
export class Machines {
  readonly #options: MachinesOptions;
  /** Servers with a driver's operation under way. */
  readonly #busy = new Map<string, Promise<void>>();
  /** Servers that were started and are observed. */
  readonly #observed = new Set<string>();
  readonly #ending = new AbortController();
  #timer: { cancel(): void } | undefined;

  constructor(options: MachinesOptions) {
    this.#options = options;
  }

  /** Takes up what was under way, and looks at the machines from now on. */
  resume(): void {
    for (const { id, state } of this.#options.store.all()) {
      if (state === 'running') this.#observed.add(id);
      else if (state !== 'failed') this.attend(id);
    }
    this.#lookLater();
  }

  /** The store says something new about a server. */
  attend(id: string): void {
    // Whoever is at it looks at the store again before leaving, without an await in between.
    if (this.#busy.has(id) || this.#ending.signal.aborted) return;
    // It is in there before the work begins, which may end at once.
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#busy.set(id, promise);
    void this.#work(id).finally(resolve);
  }

  /** In percent; 0 for what does not run. */
  cpuUtilizationOf(server: StoredServer): number {
    return server.state === 'running' ? this.#options.driver.observe(server).cpuUtilization : 0;
  }

  /** Stops looking and waiting. The machines go on, and so does what the driver has begun with them. */
  async close(): Promise<void> {
    this.#timer?.cancel();
    this.#ending.abort(new Error('the cloud is closing'));
    await Promise.allSettled(this.#busy.values());
    await this.#options.driver.close();
  }

  async #work(id: string): Promise<void> {
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
          if (this.#ending.signal.aborted) return;
          const message = messageOf(error);
          log.error(
            { id, name: server.name, error: message },
            `the machine cannot be ${toStop ? 'removed' : 'started'} yet`,
          );
          if (toStop) this.#note(server, `It cannot be removed yet: ${message}. It is tried again.`);
          await wait(this.#options.clock, delay, this.#ending.signal);
          delay = Math.min(delay * 2, LONGEST_DELAY_MS);
        }
      }
    } catch (error) {
      if (!this.#ending.signal.aborted)
        log.error({ id, error: messageOf(error) }, 'a machine was left alone');
    } finally {
      this.#busy.delete(id);
    }
  }

  async #start(server: StoredServer): Promise<void> {
    const { driver, store, metrics } = this.#options;
    const { id } = server;
    try {
      await driver.start(server, this.#ending.signal);
      metrics.operated('start', 'success');
      this.#observed.add(id);
    } catch (error) {
      if (this.#ending.signal.aborted) throw error;
      metrics.operated('start', 'error');
      store.settle([{ id, state: 'failed', message: messageOf(error) }]);
    }
  }

  async #stop(server: StoredServer): Promise<void> {
    const { driver, store, metrics } = this.#options;
    this.#observed.delete(server.id);
    try {
      await driver.stop(server, this.#ending.signal);
    } catch (error) {
      if (!this.#ending.signal.aborted) metrics.operated('stop', 'error');
      throw error;
    }
    metrics.operated('stop', 'success');
    store.remove(server.id);
  }

  #note({ id, message }: StoredServer, next: string): void {
    if (message === next) return;
    try {
      this.#options.store.noteWhileDeleting(id, next);
    } catch (error) {
      // A full disk, say. What matters is that the removal is tried again.
      this.#options.log.error({ id, error: messageOf(error) }, 'what stands in the way could not be stored');
    }
  }

  #lookLater(): void {
    this.#timer = this.#options.clock.after(this.#options.observeEveryMs, () => {
      try {
        this.#look();
      } catch (error) {
        // The store is in trouble; what has changed is seen again with the next look.
        this.#options.log.error({ error: messageOf(error) }, 'the machines could not be looked at');
      }
      this.#lookLater();
    });
  }

  #look(): void {
    const { store, driver } = this.#options;
    const changes: Change[] = [];
    for (const id of this.#observed) {
      const server = store.find(id);
      if (server?.state !== 'building' && server?.state !== 'running') {
        this.#observed.delete(id);
        continue;
      }
      const { state, message } = driver.observe(server);
      if (state !== 'building' && state !== server.state) changes.push({ id, state, message });
    }
    store.settle(changes);
  }
}
