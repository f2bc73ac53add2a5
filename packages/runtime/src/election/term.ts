import { type Clock, Fence, type Timer } from '@vmwright/core';
import { LeadershipLostError, NotLeadingError } from './errors.ts';

/** A point in time on both clocks of a machine. */
export interface Moment {
  readonly monotonic: number;
  readonly wall: number;
}

export function momentOf(clock: Clock): Moment {
  return { monotonic: clock.monotonic(), wall: clock.now() };
}

export interface TermOptions {
  readonly clock: Clock;
  /** Name of the lease in errors. */
  readonly lease: string;
  /** Time right before the request that acquired the lease was sent. */
  readonly since: Moment;
  readonly renewMs: number;
  /** Fence of an outer term that contains this term. When that fence closes, this term is lost. @default none */
  readonly within?: Fence | undefined;
}

/**
 * A leadership term. It ends `renewMs` after the start of the last successful renewal, and cannot be revived.
 *
 * After a pause of the process or a blocked event loop, timers fire late and in any order. So `holds` reads the clock
 * on each call. The timer only aborts the signal, for code that does not read `holds`.
 *
 * The monotonic clock continues while the process is paused. On most systems it stops while the machine sleeps, but the
 * wall clock continues. So the term measures its duration on both clocks and uses the longer result. If the wall clock
 * is set forward, the term may end early, which is safe. If the wall clock is set back, the monotonic clock still ends
 * the term in time.
 */
export class Term {
  /** Fence of the term: open during the term, and closed forever afterwards. */
  readonly fence: Fence;
  readonly #options: TermOptions;
  readonly #leadershipLost = new AbortController();
  #since: Moment;
  #timer: Timer | undefined;
  #over = false;

  constructor(options: TermOptions) {
    const { lease, since, within } = options;
    this.#options = options;
    this.fence = new Fence({ within, holds: () => this.holds, error: () => new NotLeadingError(lease) });
    this.#since = since;
    this.#arm();
    // Once the fence has found the term expired, the term is over, even if the wall clock is set back before the timer
    // fires.
    const { signal } = this.fence;
    if (signal.aborted) this.#onFenceClosed();
    else signal.addEventListener('abort', () => this.#onFenceClosed(), { once: true });
  }

  /**
   * Aborts with a LeadershipLostError when the term expires or the lease is lost. Aborts with the reason of `within`
   * when that fence closes.
   */
  get leadershipLost(): AbortSignal {
    return this.#leadershipLost.signal;
  }

  /** Whether the term lasts at this moment, by the clock. */
  get holds(): boolean {
    return !this.#over && this.#leftMs > 0;
  }

  /** Extends the term after a successful renewal. @param since time right before the renewal was sent */
  extend(since: Moment): void {
    this.check();
    if (this.#over) return;
    this.#since = since;
    this.#arm();
  }

  /** Ends the term if it has expired. The timer does the same, but may be late. */
  check(): void {
    if (this.#leftMs <= 0) this.lose(`not renewed for ${this.#options.renewMs / 1_000} s`);
  }

  /** Ends the term because leadership was lost. */
  lose(why: string): void {
    this.#lose(new LeadershipLostError(this.#options.lease, why));
  }

  /** Ends the term without a loss of leadership, before the lease is released. */
  end(): void {
    this.#end();
  }

  #onFenceClosed(): void {
    const outer = this.#options.within?.signal;
    if (outer?.aborted) this.#lose(outer.reason);
    else this.lose('the term has expired');
  }

  #lose(reason: unknown): void {
    if (this.#over) return;
    this.#end(reason);
    this.#leadershipLost.abort(reason);
  }

  #end(reason?: unknown): void {
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
    // Timers may fire a fraction of a millisecond early; rounding up avoids a loop of sub-millisecond timers.
    this.#timer = this.#options.clock.after(Math.ceil(this.#leftMs), () => {
      this.check();
      if (!this.#over) this.#arm();
    });
  }
}
