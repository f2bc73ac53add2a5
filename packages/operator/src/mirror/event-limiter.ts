import type { Clock } from '@vmwright/runtime';

/** Limits for all VMs together: events in a burst, and events per second afterwards. */
const BURST = 100;
const PER_SECOND = 5;
/** Minimum time between two events with the same reason about the same VM. */
const PER_VM_MS = 60_000;
/** Maximum number of VMs to remember. */
const MAX_VMS = 10_000;

/**
 * Limits the rate of events, so that ten thousand changes do not cause ten thousand writes to the API server. One limit
 * applies to all VMs together. Some events are also limited per VM.
 */
export class EventLimiter {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #recordedAt = new Map<string, number>();
  #tokens = BURST;
  #refilledAt: number;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
    this.#refilledAt = clock.monotonic();
  }

  /** Returns whether an event may be recorded. @param series key of the VM, if the event is also limited per VM */
  tryAcquire(series?: string): boolean {
    const now = this.#clock.monotonic();
    this.#tokens = Math.min(BURST, this.#tokens + ((now - this.#refilledAt) / 1_000) * PER_SECOND);
    this.#refilledAt = now;
    if (this.#tokens < 1) return false;
    if (series !== undefined) {
      if (now - (this.#recordedAt.get(series) ?? Number.NEGATIVE_INFINITY) < PER_VM_MS) return false;
      this.#recordedAt.delete(series); // inserted again, so that the map stays sorted by time
      this.#recordedAt.set(series, now);
      for (const [oldest] of this.#recordedAt) {
        if (this.#recordedAt.size <= MAX_VMS) break;
        this.#recordedAt.delete(oldest);
      }
    }
    this.#tokens -= 1;
    return true;
  }
}
