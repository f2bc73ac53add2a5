import { type Clock, wait } from '@vmwright/core';
import type { Driver, Machine, Observation } from '../machines/driver.ts';
import { bootMs, cpuAt, fails, type SimulatedSettings, stopMs } from './model.ts';

/** Driver without real machines: simulates boot and stop times, CPU utilization and boot failures. */
export class SimulatedDriver implements Driver {
  readonly name = 'simulated';
  readonly #settings: SimulatedSettings;
  readonly #clock: Clock;

  constructor(settings: SimulatedSettings, clock: Clock) {
    this.#settings = settings;
    this.#clock = clock;
  }

  async start(): Promise<void> {}

  async stop({ id, deletingSince = 0 }: Machine, signal: AbortSignal): Promise<void> {
    const left = deletingSince + stopMs(this.#settings, id) - this.#clock.now();
    if (left > 0) await wait(this.#clock, left, signal);
  }

  observe({ id, createdAt }: Machine): Observation {
    const now = this.#clock.now();
    if (now < createdAt + bootMs(this.#settings, id)) return { state: 'building', cpuUtilization: 0 };
    if (fails(this.#settings, id))
      return { state: 'failed', message: 'simulated boot failure', cpuUtilization: 0 };
    return { state: 'running', cpuUtilization: cpuAt(this.#settings, id, now) };
  }

  async close(): Promise<void> {}
}
