import type { Planned } from './agenda.ts';
import type { SimulatedProcess } from './process.ts';
import type { Schedule } from './schedule.ts';
import type { ServerStream } from './server.ts';

/** Decides the delay and the fault of each line of a stream. */
export interface Travel {
  /** Delay of the next line in milliseconds. */
  delay(): number;
  /** `stalled` silently drops this and all later lines; `cut` gives the reader a connection error instead. */
  fault(): 'cut' | 'stalled' | undefined;
}

interface Travelling {
  readonly at: number;
  /** A line, undefined for a normal end, or an error for a broken connection. */
  readonly what: string | undefined | Error;
}

/**
 * A stream of lines from a server to a process. Lines arrive in the order they were sent, whatever their delays. Arrived
 * lines wait in a buffer, like a socket's, until the process reads them.
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

  /** Callback for when the stream no longer sends: it ended, broke, or the reader closed it. */
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

  /** Breaks the stream at the server: the reader gets a connection error after the lines already sent. */
  break(): void {
    if (!this.#sending) return;
    this.#put(new Error('read ECONNRESET'));
    this.#stopSending();
  }

  /** Closes the stream at the reader: lines in transit are dropped and the reader gets `error`. */
  fail(error: Error): void {
    this.#stopSending();
    if (this.#arrival !== undefined) this.#arrival.cancelled = true;
    this.#travelling = [];
    this.#error ??= error;
    this.#process.enter(() => this.#wakeReader()); // ignored by a crashed process
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
      this.fail(new Error('the reader closed the stream'));
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
