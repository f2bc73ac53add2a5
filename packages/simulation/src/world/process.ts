import type { Owner } from './event-heap.ts';
import type { Schedule } from './schedule.ts';

/**
 * A simulated process on its own machine. Its code continues only on input from the world (a timer, a response, a line
 * of a stream), so withholding that input pauses the process.
 *
 * Guarantees: a crashed process never runs again, but its requests in transit still arrive. A resumed process receives
 * all the input that arrived during the pause. The order of the input is random, but the lines of one stream stay in
 * order.
 */
export class SimulatedProcess implements Owner {
  readonly name: string;
  readonly startedAt: number;
  /** Offset of the wall clock in milliseconds. A change makes the wall clock jump, but not the monotonic clock. */
  skewMs = 0;
  readonly #schedule: Schedule;
  readonly #crashListeners = new Set<() => void>();
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

  /** Whether the process has crashed. Its scheduled events are then skipped. */
  get gone(): boolean {
    return this.#state === 'crashed';
  }

  /** Runs `act`: now if the process is running, on resume if it is paused, and never if it has crashed. */
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

  /** Crashes the process for good; a restart is a new process. */
  crash(): void {
    if (this.#state === 'crashed') return;
    this.#state = 'crashed';
    this.#held = [];
    for (const listener of this.#crashListeners) listener();
    this.#crashListeners.clear();
  }

  /** Registers a callback for when the process crashes. @returns a function that unregisters it */
  onCrash(listener: () => void): () => void {
    this.#crashListeners.add(listener);
    return () => void this.#crashListeners.delete(listener);
  }
}
