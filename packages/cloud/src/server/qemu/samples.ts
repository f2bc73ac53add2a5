import type { Clock } from '@vmwright/core';
import type { Machine, Observation } from '../machines/driver.ts';
import { cpuSecondsOf } from './processes.ts';

/** What a look at a machine shows. */
interface Look {
  readonly pid: number | undefined;
  readonly state: Observation['state'];
  readonly message?: string;
}

export interface SamplesOptions {
  readonly clock: Clock;
  /** The machine's: one that has two and uses both is at 100 percent. */
  readonly cpus: number;
  /** What it throws means "cannot be said just now". */
  readonly look: (machine: Machine, signal: AbortSignal) => Promise<Look>;
}

interface Sample {
  observation: Observation;
  /** Used up to when. */
  cpu: { readonly pid: number; readonly seconds: number; readonly at: number } | undefined;
  readonly ended: AbortController;
  timer: { cancel(): void } | undefined;
}

const EVERY_MS = 1_000;

/** Looks at each machine that somebody has asked for once a second, so that asking costs nothing. */
export class Samples {
  readonly #options: SamplesOptions;
  readonly #samples = new Map<string, Sample>();

  constructor(options: SamplesOptions) {
    this.#options = options;
  }

  of(machine: Machine): Observation {
    const known = this.#samples.get(machine.id);
    if (known !== undefined) return known.observation;
    const sample: Sample = {
      observation: { state: 'building', cpuUtilization: 0 },
      cpu: undefined,
      ended: new AbortController(),
      timer: undefined,
    };
    this.#samples.set(machine.id, sample);
    void this.#take(machine, sample);
    return sample.observation;
  }

  drop(id: string): void {
    const sample = this.#samples.get(id);
    sample?.ended.abort(new Error('the machine is stopped'));
    sample?.timer?.cancel();
    this.#samples.delete(id);
  }

  async close(): Promise<void> {
    for (const id of [...this.#samples.keys()]) this.drop(id);
  }

  async #take(machine: Machine, sample: Sample): Promise<void> {
    const { look, clock } = this.#options;
    try {
      const { pid, state, message } = await look(machine, sample.ended.signal);
      const cpuUtilization = this.#utilization(pid, sample);
      sample.observation = { state, cpuUtilization, ...(message !== undefined && { message }) };
    } catch {
      // A monitor that is busy says nothing about the machine: the last look stands.
    }
    if (sample.ended.signal.aborted) return;
    sample.timer = clock.after(EVERY_MS, () => void this.#take(machine, sample));
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
