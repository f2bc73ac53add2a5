import type { Clock, Timer } from '@vmwright/core';
import { ConnectionError } from '../src/client/errors.ts';
import type { SeededRandom, Timeline } from './election-model.ts';

/** State of the network between a machine and the server, for requests and responses. */
export type Network = 'good' | 'slow' | 'lossy' | 'down';

export interface HostOptions {
  readonly timeline: Timeline;
  readonly random: SeededRandom;
  /** Clock rate relative to true time. */
  readonly speed: number;
  readonly wallOffsetMs: number;
}

/**
 * Simulated machine in the test's virtual time. Its clocks are inaccurate. It can pause, sleep and crash. Its network
 * loses and delays messages. A crash ends the current incarnation, and drops the timers and responses of that
 * incarnation.
 */
export class Host {
  readonly #options: HostOptions;
  #resumesAt = 0;
  /** Total sleep time, during which the monotonic clock stands still. */
  #sleptMs = 0;
  #sleep: { readonly from: number; readonly until: number } | undefined;
  #wallJumpMs = 0;
  #incarnation = 0;
  network: Network = 'good';
  readonly counts = { lostRequests: 0, lostResponses: 0 };

  constructor(options: HostOptions) {
    this.#options = options;
  }

  /** Ends the running process without notice. */
  crash(): void {
    this.#incarnation += 1;
  }

  /** Suspends the process; the clocks continue. */
  pause(ms: number): void {
    this.#resumesAt = Math.max(this.#resumesAt, this.#options.timeline.now + ms);
  }

  /** Suspends the whole machine; its monotonic clock stands still. */
  sleep(ms: number): void {
    const from = this.#options.timeline.now;
    if (this.#sleep !== undefined && from < this.#sleep.until) return;
    this.#sleptMs = this.#slept();
    this.#sleep = { from, until: from + ms };
    this.pause(ms);
  }

  jumpWallClock(ms: number): void {
    this.#wallJumpMs += ms;
  }

  /** Returns a clock for the current incarnation. */
  clock(): Clock {
    const incarnation = this.#incarnation;
    const { timeline, speed, wallOffsetMs } = this.#options;
    const monotonic = () => (timeline.now - this.#slept()) * speed;
    return {
      monotonic,
      now: () => 1_700_000_000_000 + wallOffsetMs + this.#wallJumpMs + timeline.now * speed,
      after: (ms, callback): Timer => {
        const due = monotonic() + Math.max(ms, 0);
        let cancelled = false;
        const fire = () => {
          if (cancelled) return;
          // The monotonic clock stood still while the machine slept. If the timer is therefore not due yet, it is set
          // again.
          if (monotonic() < due - 1e-6) timeline.at(timeline.now + (due - monotonic()) / speed, whenAwake);
          else callback();
        };
        const whenAwake = () => this.#whenAwake(incarnation, fire);
        timeline.at(timeline.now + Math.max(ms, 0) / speed, whenAwake);
        return {
          cancel: () => {
            cancelled = true;
          },
        };
      },
    };
  }

  /**
   * Returns a function that sends requests for the current incarnation. An aborted request still reaches the server.
   */
  sender(): <T>(signal: AbortSignal | undefined, serve: () => T) => Promise<T> {
    const incarnation = this.#incarnation;
    return (signal, serve) => this.#send(incarnation, signal, serve);
  }

  #send<T>(incarnation: number, signal: AbortSignal | undefined, serve: () => T): Promise<T> {
    const { timeline } = this.#options;
    return new Promise((resolve, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
      const receive = (settle: () => void) => this.#whenAwake(incarnation, settle);
      const requestDelay = this.#delay();
      if (requestDelay === undefined) {
        this.counts.lostRequests += 1;
        timeline.at(timeline.now + 50, () => receive(() => reject(new ConnectionError('reset'))));
        return;
      }
      timeline.at(timeline.now + requestDelay, () => {
        let settle: () => void;
        try {
          const result = serve();
          settle = () => resolve(result);
        } catch (error) {
          settle = () => reject(error);
        }
        const responseDelay = this.#delay();
        if (responseDelay !== undefined) timeline.at(timeline.now + responseDelay, () => receive(settle));
        else this.counts.lostResponses += 1; // the client gets no error and has to time out
      });
    });
  }

  #slept(): number {
    if (this.#sleep === undefined) return this.#sleptMs;
    const { from, until } = this.#sleep;
    return this.#sleptMs + Math.min(this.#options.timeline.now, until) - from;
  }

  /**
   * Calls the function now or, if the machine is suspended, after it resumes. After a suspension, waiting functions are
   * called in random order, like the callbacks of timers and sockets on a real machine.
   */
  #whenAwake(incarnation: number, callback: () => void): void {
    if (incarnation !== this.#incarnation) return;
    const { timeline, random } = this.#options;
    if (timeline.now < this.#resumesAt)
      timeline.at(this.#resumesAt + random.next() / 1_000, () => this.#whenAwake(incarnation, callback));
    else callback();
  }

  /** Returns the delay of a message in milliseconds; undefined if it is lost. */
  #delay(): number | undefined {
    const chance = this.#options.random.next();
    switch (this.network) {
      case 'good':
        return 1 + 20 * chance;
      case 'slow': // heavy-tailed: sometimes longer than a lease
        return 50 / (1 - chance) ** 1.5;
      case 'lossy':
        return chance < 0.4 ? undefined : 1 + 200 * chance;
      case 'down':
        return undefined;
    }
  }
}
