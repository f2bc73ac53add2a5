import type { ServerAddress, Timer, Transport, World } from '@vmwright/runtime';
import type { Choices } from './choices.ts';
import type { Network } from './network.ts';
import type { SimulatedProcess } from './process.ts';
import type { Schedule } from './schedule.ts';
import { WorkTracker } from './work-tracker.ts';

/** Start time of every simulation on a clock without skew, in milliseconds since 1970: 1 January 2026. */
export const EPOCH_MS = Date.UTC(2026, 0, 1);

/** One timer in `oneIn` fires up to `ms` milliseconds late, as on a busy machine. */
const LATE_TIMER = { oneIn: 24, ms: 500 };

export interface WorldParts {
  readonly schedule: Schedule;
  readonly choices: Choices;
  readonly network: Network;
  readonly uuid: () => string;
}

/** The `World` of one simulated process. */
export class SimulatedWorld implements World {
  readonly process: SimulatedProcess;
  /** Tracks the process's controllers and jobs. */
  readonly work: WorkTracker;
  readonly #parts: WorldParts;

  constructor(process: SimulatedProcess, parts: WorldParts) {
    this.process = process;
    this.work = new WorkTracker(process.name, parts.schedule);
    this.#parts = parts;
  }

  now(): number {
    return EPOCH_MS + this.#parts.schedule.now + this.process.skewMs;
  }

  monotonic(): number {
    return this.#parts.schedule.now - this.process.startedAt;
  }

  after(ms: number, callback: () => void): Timer {
    const { schedule, choices, network } = this.#parts;
    const late = network.faulty && choices.oneIn(LATE_TIMER.oneIn) ? choices.pick(LATE_TIMER.ms) : 0;
    let cancelled = false;
    const planned = schedule.after(
      Math.max(ms, 0) + late,
      // While the process is paused, the callback waits for the resume. Until then, an earlier callback may cancel it.
      () => this.process.enter(() => cancelled || callback()),
      this.process,
    );
    return {
      cancel: () => {
        cancelled = true;
        planned.cancelled = true;
      },
    };
  }

  random(): number {
    return this.#parts.choices.fraction();
  }

  uuid(): string {
    return this.#parts.uuid();
  }

  connect({ origin }: ServerAddress): Transport {
    return this.#parts.network.connect(this.process, origin);
  }
}
