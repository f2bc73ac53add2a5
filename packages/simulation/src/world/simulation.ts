import { Choices } from './choices.ts';
import { Counts } from './counts.ts';
import { Network } from './network.ts';
import { SimulatedProcess } from './process.ts';
import { type RunOptions, Schedule } from './schedule.ts';
import { Trace } from './trace.ts';
import { SimulatedWorld } from './world.ts';

export interface SimulationOptions {
  readonly choices: Choices;
  /** Whether to keep a readable trace in addition to its hash. @default false */
  readonly story?: boolean;
}

/** A simulated world: virtual clock, choices, network and processes. */
export class Simulation {
  readonly choices: Choices;
  readonly schedule: Schedule;
  readonly trace: Trace;
  readonly counts = new Counts();
  readonly network: Network;
  readonly #story: boolean;
  #uuids = 0;

  constructor({ choices, story = false }: SimulationOptions) {
    this.choices = choices;
    this.#story = story;
    this.schedule = new Schedule(choices);
    this.trace = new Trace(story);
    const { schedule, trace, counts } = this;
    this.network = new Network({ schedule, choices, trace, counts });
  }

  /** Starts a process and returns its view of the world. A restarted process may reuse the name of a crashed one. */
  start(name: string): SimulatedWorld {
    const process = new SimulatedProcess(name, this.schedule);
    const { schedule, choices, network } = this;
    return new SimulatedWorld(process, { schedule, choices, network, uuid: () => this.uuid() });
  }

  /**
   * Returns a unique id in the form of a version 4 UUID. It comes from a counter and not from the choices: in a
   * replayed run, all choices after the recorded ones are 0, so ids from choices would be equal.
   */
  uuid(): string {
    this.#uuids += 1;
    const hex = Math.imul(this.#uuids, 0x9e3779b1) >>> 0; // makes the first digits differ, for readability
    const serial = this.#uuids.toString(16).padStart(12, '0');
    return `${hex.toString(16).padStart(8, '0')}-0000-4000-8000-${serial}`;
  }

  /** Adds an entry to the trace. */
  note(who: string, what: string): void {
    this.trace.note(this.schedule.now, who, what);
  }

  /**
   * Runs the simulation; see `Schedule.run`. Errors have stack traces only when a readable trace is kept: injected
   * faults create many errors, and capturing their stacks took a tenth of the run time.
   */
  async run(options: RunOptions): Promise<void> {
    const { stackTraceLimit } = Error;
    if (!this.#story) Error.stackTraceLimit = 0;
    try {
      await this.schedule.run(options);
    } finally {
      Error.stackTraceLimit = stackTraceLimit;
    }
  }
}

export function seeded(seed: number, options: Omit<SimulationOptions, 'choices'> = {}): Simulation {
  return new Simulation({ choices: Choices.seeded(seed), ...options });
}
