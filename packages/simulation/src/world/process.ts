import type { Owner } from './agenda.ts';
import type { Schedule } from './schedule.ts';

/**
 * A process on a machine of its own. Its code goes on only by what comes in from the world (a timer, an answer, a line of
 * a stream), so whoever holds that back holds the process.
 *
 * Guarantees: a crashed one never does anything again, while what it has sent still arrives; a paused one gets all that
 * came meanwhile when it goes on, in any order but for the lines of one stream.
 */
export class SimulatedProcess implements Owner {
  readonly name: string;
  readonly startedAt: number;
  /** How far its wall clock is off. Changing it makes the clock jump; the monotonic one never does. */
  skewMs = 0;
  readonly #schedule: Schedule;
  readonly #endings = new Set<() => void>();
  #state: 'running' | 'paused' | 'crashed' = 'running';
  #held: (() => void)[] = [];

  constructor(name: string, schedule: Schedule) {
    this.name = name;
    this.#schedule = schedule;
    this.startedAt = schedule.now;
  }

  get state(): 'running' | 'paused' | 'crashed' {
    return this.#state;
  }

  /** It has crashed: what was planned for it does not happen. */
  get gone(): boolean {
    return this.#state === 'crashed';
  }

  /** Lets its code go on, as soon as it runs. */
  enter(act: () => void): void {
    if (this.#state === 'running') act();
    else if (this.#state === 'paused') this.#held.push(act);
  }

  pause(): void {
    if (this.#state === 'running') this.#state = 'paused';
  }

  resume(): void {
    if (this.#state !== 'paused') return;
    this.#state = 'running';
    const held = this.#held;
    this.#held = [];
    for (const act of held) this.#schedule.after(0, () => this.enter(act), this);
  }

  /** For good; who comes back is a new process. */
  crash(): void {
    if (this.#state === 'crashed') return;
    this.#state = 'crashed';
    this.#held = [];
    for (const ending of this.#endings) ending();
    this.#endings.clear();
  }

  /** Called when it crashes, by what holds something open for it. @returns takes that back */
  onCrash(ending: () => void): () => void {
    this.#endings.add(ending);
    return () => void this.#endings.delete(ending);
  }
}
