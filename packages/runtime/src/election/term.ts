import { type Clock, Fence, type Timer } from '@vmwright/core';
import { LeadershipLostError, NotLeadingError } from './errors.ts';

/** A point in time by both of a machine's clocks. */
export interface Moment {
  readonly monotonic: number;
  readonly wall: number;
}

export function momentOf(clock: Clock): Moment {
  return { monotonic: clock.monotonic(), wall: clock.now() };
}

export interface TermOptions {
  readonly clock: Clock;
  /** As it reads in errors. */
  readonly lease: string;
  /** Just before the request that has taken the lease was sent. */
  readonly since: Moment;
  readonly renewMs: number;
}

/**
 * The time for which one leads. It ends `renewMs` after the start of the last successful renewal and does not come
 * back: what was aborted at its end stays so.
 *
 * A process that was stopped and goes on, or whose event loop was blocked, gets its timers late and in any order. So
 * `holds` asks the clock at each call, and the timer is only there for those who do not ask.
 *
 * The monotonic clock goes on while a process is stopped, but on most systems not while the whole machine sleeps; the
 * wall clock does. So the longer of the two counts. A wall clock set forward may end a term too early, which is safe;
 * one set back changes nothing.
 */
export class Term {
  /** Open while the term lasts, and closed for ever after. */
  readonly fence: Fence;
  readonly #options: TermOptions;
  readonly #leadershipLost = new AbortController();
  #since: Moment;
  #timer: Timer | undefined;
  #over = false;

  constructor(options: TermOptions) {
    this.#options = options;
    this.fence = new Fence({ holds: () => this.holds, error: () => new NotLeadingError(options.lease) });
    this.#since = options.since;
    this.#arm();
  }

  /** Aborts with a LeadershipLostError when time is up or another has the lease. */
  get leadershipLost(): AbortSignal {
    return this.#leadershipLost.signal;
  }

  get holds(): boolean {
    return !this.#over && this.#leftMs > 0;
  }

  /** After a successful renewal. @param since just before it was sent */
  extend(since: Moment): void {
    this.check();
    if (this.#over) return;
    this.#since = since;
    this.#arm();
  }

  /** Notices that time is up where the timer is late. */
  check(): void {
    if (this.#leftMs <= 0) this.lose(`not renewed for ${this.#options.renewMs / 1_000} s`);
  }

  lose(why: string): void {
    if (this.#over) return;
    const reason = new LeadershipLostError(this.#options.lease, why);
    this.#end(reason);
    this.#leadershipLost.abort(reason);
  }

  /** Ends the term without its being lost: the lease is about to be released. */
  end(): void {
    this.#end();
  }

  #end(reason?: LeadershipLostError): void {
    this.#over = true;
    this.#timer?.cancel();
    this.fence.close(reason);
  }

  get #leftMs(): number {
    const { clock, renewMs } = this.#options;
    const { monotonic, wall } = this.#since;
    return renewMs - Math.max(clock.monotonic() - monotonic, clock.now() - wall);
  }

  #arm(): void {
    this.#timer?.cancel();
    // Timers may be early by a fraction of a millisecond; to wait for fractions again and again would lead nowhere.
    this.#timer = this.#options.clock.after(Math.ceil(this.#leftMs), () => {
      this.check();
      if (!this.#over) this.#arm();
    });
  }
}
