import type { Clock, Timer } from '@vmwright/core';
import { ConnectionError } from '../src/client/errors.ts';
import type { SeededRandom, Timeline } from './election-model.ts';

/** How requests fare on the way there, or answers on the way back. */
export type Network = 'good' | 'slow' | 'lossy' | 'down';

export interface HostOptions {
  readonly timeline: Timeline;
  readonly random: SeededRandom;
  /** How fast its clocks run. */
  readonly speed: number;
  readonly wallOffsetMs: number;
}

/**
 * A machine in a virtual time that the test owns: its clocks are wrong, it can be stopped and put to sleep, and its
 * network loses and delays. What runs on it belongs to a life, and is no more after `crash`.
 */
export class Host {
  readonly #options: HostOptions;
  #resumesAt = 0;
  /** While it sleeps, its monotonic clock stands still. */
  #sleptMs = 0;
  #sleep: { readonly from: number; readonly until: number } | undefined;
  #wallJumpMs = 0;
  #life = 0;
  network: Network = 'good';
  readonly counts = { lostRequests: 0, lostAnswers: 0 };

  constructor(options: HostOptions) {
    this.#options = options;
  }

  /** What runs on it is gone without a word. */
  crash(): void {
    this.#life += 1;
  }

  /** What runs on it does nothing for a while; the clocks go on. */
  pause(ms: number): void {
    this.#resumesAt = Math.max(this.#resumesAt, this.#options.timeline.now + ms);
  }

  /** The whole machine does nothing for a while, and its monotonic clock stands still. */
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

  /** For what begins to run now. */
  clock(): Clock {
    const life = this.#life;
    const { timeline, speed, wallOffsetMs } = this.#options;
    const monotonic = () => (timeline.now - this.#slept()) * speed;
    return {
      monotonic,
      now: () => 1_700_000_000_000 + wallOffsetMs + this.#wallJumpMs + timeline.now * speed,
      after: (ms, callback): Timer => {
        const due = monotonic() + Math.max(ms, 0);
        let cancelled = false;
        const ring = () => {
          if (cancelled) return;
          // Sleep has put it off.
          if (monotonic() < due - 1e-6) timeline.at(timeline.now + (due - monotonic()) / speed, whenAwake);
          else callback();
        };
        const whenAwake = () => this.#whenAwake(life, ring);
        timeline.at(timeline.now + Math.max(ms, 0) / speed, whenAwake);
        return {
          cancel: () => {
            cancelled = true;
          },
        };
      },
    };
  }

  /** For what begins to run now: sends requests. Giving one up calls nothing back: what is on its way arrives. */
  sender(): <T>(signal: AbortSignal | undefined, serve: () => T) => Promise<T> {
    const life = this.#life;
    return (signal, serve) => this.#send(life, signal, serve);
  }

  #send<T>(life: number, signal: AbortSignal | undefined, serve: () => T): Promise<T> {
    const { timeline } = this.#options;
    return new Promise((resolve, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
      const back = (answer: () => void) => this.#whenAwake(life, answer);
      const there = this.#delay();
      if (there === undefined) {
        this.counts.lostRequests += 1;
        timeline.at(timeline.now + 50, () => back(() => reject(new ConnectionError('reset'))));
        return;
      }
      timeline.at(timeline.now + there, () => {
        let answer: () => void;
        try {
          const result = serve();
          answer = () => resolve(result);
        } catch (error) {
          answer = () => reject(error);
        }
        const delay = this.#delay();
        if (delay !== undefined) timeline.at(timeline.now + delay, () => back(answer));
        else this.counts.lostAnswers += 1; // silence: the client has to give up by itself
      });
    });
  }

  #slept(): number {
    if (this.#sleep === undefined) return this.#sleptMs;
    const { from, until } = this.#sleep;
    return this.#sleptMs + Math.min(this.#options.timeline.now, until) - from;
  }

  /** Now, or when the machine goes on; in what order is chance, as with timers and sockets after a stop. */
  #whenAwake(life: number, act: () => void): void {
    if (life !== this.#life) return;
    const { timeline, random } = this.#options;
    if (timeline.now < this.#resumesAt)
      timeline.at(this.#resumesAt + random.next() / 1_000, () => this.#whenAwake(life, act));
    else act();
  }

  /** Undefined: never arrives. */
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
