import type { Planned } from './agenda.ts';
import type { SimulatedProcess } from './process.ts';
import type { Schedule } from './schedule.ts';
import type { ServerStream } from './server.ts';

/** Decides how a line travels: when it arrives, or that nothing does any more. */
export interface Travel {
  /** Milliseconds on the way. */
  delay(): number;
  /** `stalled`: this and all later lines are lost in silence; `cut`: the reader sees a broken connection instead. */
  fault(): 'cut' | 'stalled' | undefined;
}

interface Travelling {
  readonly at: number;
  /** A line; undefined for the end in good order, an error for a break. */
  readonly what: string | undefined | Error;
}

/**
 * Lines on their way from a server to a process, in their order: none overtakes another, however long it takes. What has
 * arrived waits in a buffer like that of a socket, so a process that was paused finds it there.
 */
export class Stream implements ServerStream {
  readonly #schedule: Schedule;
  readonly #process: SimulatedProcess;
  readonly #travel: Travel;
  #travelling: Travelling[] = [];
  #arrival: Planned | undefined;
  #lastAt = 0;
  #sending = true;
  #arrived: string[] = [];
  #ended = false;
  #error: Error | undefined;
  #wake: (() => void) | undefined;
  #closed: (() => void) | undefined;

  constructor(schedule: Schedule, process: SimulatedProcess, travel: Travel) {
    this.#schedule = schedule;
    this.#process = process;
    this.#travel = travel;
  }

  /** Called when the reader is gone. */
  set onClose(closed: () => void) {
    if (this.#sending) this.#closed = closed;
    else closed();
  }

  send(line: string): void {
    if (!this.#sending) return;
    const fault = this.#travel.fault();
    if (fault !== 'stalled') this.#put(fault === 'cut' ? new Error('read ECONNRESET') : line);
    if (fault !== undefined) this.#stopSending();
  }

  end(): void {
    if (!this.#sending) return;
    this.#put(undefined);
    this.#stopSending();
  }

  /** From the server's side: it is gone, and the reader sees a broken connection after what was sent before. */
  break(): void {
    if (!this.#sending) return;
    this.#put(new Error('read ECONNRESET'));
    this.#stopSending();
  }

  /** From the reader's side: it has left, or has been told to. Nothing of it is to come. */
  fail(error: Error): void {
    this.#stopSending();
    if (this.#arrival !== undefined) this.#arrival.cancelled = true;
    this.#travelling = [];
    this.#error ??= error;
    this.#process.enter(() => this.#wakeReader()); // a crashed one hears nothing of it
  }

  async *lines(): AsyncGenerator<string, void, undefined> {
    try {
      for (;;) {
        while (this.#arrived.length === 0) {
          if (this.#error !== undefined) throw this.#error;
          if (this.#ended) return;
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        }
        const lines = this.#arrived;
        this.#arrived = [];
        yield* lines;
      }
    } finally {
      this.fail(new Error('the reader has left'));
    }
  }

  #put(what: Travelling['what']): void {
    const at = Math.max(this.#schedule.now + this.#travel.delay(), this.#lastAt);
    this.#lastAt = at;
    this.#travelling.push({ at, what });
    if (this.#travelling.length === 1) this.#awaitFirst(at);
  }

  #awaitFirst(at: number): void {
    this.#arrival = this.#schedule.after(at - this.#schedule.now, () => this.#arrive(), this.#process);
  }

  #arrive(): void {
    let count = 0;
    for (const { at, what } of this.#travelling) {
      if (at > this.#schedule.now) break;
      count += 1;
      if (typeof what === 'string') this.#arrived.push(what);
      else if (what === undefined) this.#ended = true;
      else this.#error = what;
    }
    this.#travelling.splice(0, count);
    const [next] = this.#travelling;
    if (next !== undefined) this.#awaitFirst(next.at);
    this.#process.enter(() => this.#wakeReader());
  }

  #wakeReader(): void {
    this.#wake?.();
    this.#wake = undefined;
  }

  #stopSending(): void {
    if (!this.#sending) return;
    this.#sending = false;
    this.#closed?.();
    this.#closed = undefined;
  }
}
