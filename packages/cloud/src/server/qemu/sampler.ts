import type { Clock } from '@vmwright/core';
import type { Machine, Observation } from '../machines/driver.ts';
import { cpuSecondsOf } from './processes.ts';

/** State of a machine at one point in time. */
interface Inspection {
  readonly pid: number | undefined;
  readonly state: Observation['state'];
  readonly message?: string;
}

export interface SamplerOptions {
  readonly clock: Clock;
  /** Number of CPUs per machine. A machine that uses all of them is at 100 percent. */
  readonly cpus: number;
  /** Inspects a machine. If it throws, the previous sample is kept. */
  readonly inspect: (machine: Machine, signal: AbortSignal) => Promise<Inspection>;
}

interface Sample {
  observation: Observation;
  /** CPU time used by the process up to `at`. */
  cpu: { readonly pid: number; readonly seconds: number; readonly at: number } | undefined;
  readonly stopped: AbortController;
  timer: { cancel(): void } | undefined;
}

const INTERVAL_MS = 1_000;

/** Samples each machine once a second, starting with its first `get`, so that `get` is cheap. */
export class Sampler {
  readonly #options: SamplerOptions;
  readonly #samples = new Map<string, Sample>();

  constructor(options: SamplerOptions) {
    this.#options = options;
  }

  /** Returns the last sample of a machine; `building` before the first one. */
  get(machine: Machine): Observation {
    const known = this.#samples.get(machine.id);
    if (known !== undefined) return known.observation;
    const sample: Sample = {
      observation: { state: 'building', cpuUtilization: 0 },
      cpu: undefined,
      stopped: new AbortController(),
      timer: undefined,
    };
    this.#samples.set(machine.id, sample);
    void this.#sample(machine, sample);
    return sample.observation;
  }

  /** Stops sampling a machine. */
  stop(id: string): void {
    const sample = this.#samples.get(id);
    sample?.stopped.abort(new Error('sampling was stopped'));
    sample?.timer?.cancel();
    this.#samples.delete(id);
  }

  async close(): Promise<void> {
    for (const id of [...this.#samples.keys()]) this.stop(id);
  }

  async #sample(machine: Machine, sample: Sample): Promise<void> {
    const { inspect, clock } = this.#options;
    try {
      const { pid, state, message } = await inspect(machine, sample.stopped.signal);
      const cpuUtilization = this.#utilization(pid, sample);
      sample.observation = { state, cpuUtilization, ...(message !== undefined && { message }) };
    } catch {
      // A busy QMP monitor says nothing about the machine: keep the previous sample.
    }
    if (sample.stopped.signal.aborted) return;
    sample.timer = clock.after(INTERVAL_MS, () => void this.#sample(machine, sample));
  }

  #utilization(pid: number | undefined, sample: Sample): number {
    const seconds = pid === undefined ? undefined : cpuSecondsOf(pid);
    const at = this.#options.clock.now();
    const before = sample.cpu;
    sample.cpu = pid === undefined || seconds === undefined ? undefined : { pid, seconds, at };
    if (seconds === undefined || before === undefined || before.pid !== pid || at <= before.at) return 0;
    const used = (seconds - before.seconds) / ((at - before.at) / 1000) / this.#options.cpus;
    return Math.round(Math.min(Math.max(used, 0), 1) * 100);
  }
}
