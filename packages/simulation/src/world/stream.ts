import type { ScheduledEvent } from './event-heap.ts';
import type { SimulatedProcess } from './process.ts';
import type { Schedule } from './schedule.ts';
import type { ServerStream } from './server.ts';

/** Decides the delay and the fault of each line of a stream. */
export interface Delivery {
  /** Delay of the next line in milliseconds. */
  delay(): number;
  /**
   * Fault of the next line. `stalled` silently drops that line and all later lines. `cut` sends a connection error
   * instead.
   */
  fault(): 'cut' | 'stalled' | undefined;
}

interface InTransit {
  readonly at: number;
  /** A line, undefined for a normal end, or an error for a broken connection. */
  readonly content: string | undefined | Error;
}

/**
 * A stream of lines from a server to a process. Lines arrive in the order in which they were sent, regardless of their
 * delays. Arrived lines wait in a buffer, like a socket's, until the process reads them.
 */
export class Stream implements ServerStream {
  readonly #schedule: Schedule;
  readonly #process: SimulatedProcess;
  readonly #delivery: Delivery;
  #inTransit: InTransit[] = [];
  #arrival: ScheduledEvent | undefined;
  #lastAt = 0;
  #sending = true;
  #arrived: string[] = [];
  #ended = false;
  #error: Error | undefined;
  #wakeUp: (() => void) | undefined;
  #closed: (() => void) | undefined;

  constructor(schedule: Schedule, process: SimulatedProcess, travel: Delivery) {
    this.#schedule = schedule;
    this.#process = process;
    this.#delivery = travel;
  }

  /** Called when the stream stops sending, because it ended or broke, or because the reader closed it. */
  set onClose(closed: () => void) {
    if (this.#sending) this.#closed = closed;
    else closed();
  }

  send(line: string): void {
    if (!this.#sending) return;
    const fault = this.#delivery.fault();
    if (fault !== 'stalled') this.#put(fault === 'cut' ? new Error('read ECONNRESET') : line);
    if (fault !== undefined) this.#stopSending();
  }

  end(): void {
    if (!this.#sending) return;
    this.#put(undefined);
    this.#stopSending();
  }

  /** Breaks the stream at the server. The reader gets a connection error after the lines already sent. */
  break(): void {
    if (!this.#sending) return;
    this.#put(new Error('read ECONNRESET'));
    this.#stopSending();
  }

  /** Closes the stream at the reader. Lines in transit are dropped, and the reader gets `error`. */
  fail(error: Error): void {
    this.#stopSending();
    if (this.#arrival !== undefined) this.#arrival.cancelled = true;
    this.#inTransit = [];
    this.#error ??= error;
    this.#process.enter(() => this.#wakeReader()); // has no effect if the process crashed
  }

  async *lines(): AsyncGenerator<string, void, undefined> {
    try {
      for (;;) {
        while (this.#arrived.length === 0) {
          if (this.#error !== undefined) throw this.#error;
          if (this.#ended) return;
          await new Promise<void>((resolve) => {
            this.#wakeUp = resolve;
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

  #put(content: InTransit['content']): void {
    const at = Math.max(this.#schedule.now + this.#delivery.delay(), this.#lastAt);
    this.#lastAt = at;
    this.#inTransit.push({ at, content });
    if (this.#inTransit.length === 1) this.#awaitFirst(at);
  }

  #awaitFirst(at: number): void {
    this.#arrival = this.#schedule.after(at - this.#schedule.now, () => this.#arrive(), this.#process);
  }

  #arrive(): void {
    let count = 0;
    for (const { at, content } of this.#inTransit) {
      if (at > this.#schedule.now) break;
      count += 1;
      if (typeof content === 'string') this.#arrived.push(content);
      else if (content === undefined) this.#ended = true;
      else this.#error = content;
    }
    this.#inTransit.splice(0, count);
    const [next] = this.#inTransit;
    if (next !== undefined) this.#awaitFirst(next.at);
    this.#process.enter(() => this.#wakeReader());
  }

  #wakeReader(): void {
    this.#wakeUp?.();
    this.#wakeUp = undefined;
  }

  #stopSending(): void {
    if (!this.#sending) return;
    this.#sending = false;
    this.#closed?.();
    this.#closed = undefined;
  }
}
