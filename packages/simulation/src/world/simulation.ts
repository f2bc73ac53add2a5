import { Choices } from './choices.ts';
import { Counts } from './counts.ts';
import { Network } from './network.ts';
import { SimulatedProcess } from './process.ts';
import { type RunOptions, Schedule } from './schedule.ts';
import { Trace } from './trace.ts';
import { SimulatedWorld } from './world.ts';

export interface SimulationOptions {
  readonly choices: Choices;
  /** Keep a story that people can read, beside the hash. @default false */
  readonly story?: boolean;
}

/** A world with its time, its chance, its network and its processes. */
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

  /** A new process, and the world as it sees it. A name may come back after a crash. */
  start(name: string): SimulatedWorld {
    const process = new SimulatedProcess(name, this.schedule);
    const { schedule, choices, network } = this;
    return new SimulatedWorld(process, { schedule, choices, network, uuid: () => this.uuid() });
  }

  /**
   * In the form of version 4, and different each time: counted, not chosen, or those of an exhausted tape would all be
   * the same.
   */
  uuid(): string {
    this.#uuids += 1;
    const hex = Math.imul(this.#uuids, 0x9e3779b1) >>> 0; // spread over the first digits, as people compare them
    const serial = this.#uuids.toString(16).padStart(12, '0');
    return `${hex.toString(16).padStart(8, '0')}-0000-4000-8000-${serial}`;
  }

  note(who: string, what: string): void {
    this.trace.note(this.schedule.now, who, what);
  }

  /**
   * Lets things happen; see `Schedule.run`. Errors have stacks only where a story is told: what goes wrong on purpose
   * makes many of them, and taking stacks down took a tenth of the time.
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
