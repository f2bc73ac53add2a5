import type { ServerAddress, Timer, Transport, TransportRequest } from '@vmwright/core';
import { responseOf } from '@vmwright/core/testing';
import type { CloudWorld } from '../src/client/world.ts';

interface VirtualTimer {
  readonly at: number;
  readonly callback: () => void;
}

/** Response to a request: a response, an Error to throw instead, or `never` for no response until the request is aborted. */
export type Scripted =
  | { readonly status: number; readonly body?: string | object; readonly headers?: Record<string, string> }
  | Error
  | 'never';

/** A world with a virtual clock, advanced by `advance` and `until`, and a cloud that responds from a script. */
export class VirtualWorld implements CloudWorld {
  readonly sent: TransportRequest[] = [];
  readonly addresses: ServerAddress[] = [];
  /** Virtual time of each request in `sent`. */
  readonly sentAt: number[] = [];
  closed = 0;
  readonly #script: Scripted[];
  readonly #timers = new Set<VirtualTimer>();
  readonly #requestListeners = new Set<() => void>();
  #time = Date.parse('2026-01-01T00:00:00Z');

  constructor(...script: Scripted[]) {
    this.#script = script;
  }

  now(): number {
    return this.#time;
  }

  monotonic(): number {
    return this.#time;
  }

  random(): number {
    return 0.5;
  }

  after(ms: number, callback: () => void): Timer {
    const timer = { at: this.#time + Math.max(ms, 0), callback };
    this.#timers.add(timer);
    return { cancel: () => void this.#timers.delete(timer) };
  }

  /** Number of pending timers. */
  get timers(): number {
    return this.#timers.size;
  }

  /** Advances the clock and fires the timers that become due, in order. */
  advance(ms: number): void {
    const end = this.#time + ms;
    for (;;) {
      const next = [...this.#timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#time = Math.max(this.#time, next.at);
      next.callback();
    }
    this.#time = end;
  }

  /** Advances the clock from timer to timer until the promise settles. */
  async until<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const done = () => {
      settled = true;
    };
    promise.then(done, done);
    while (!settled) {
      for (let turn = 0; turn < 20 && !settled; turn++) await Promise.resolve();
      const [first] = [...this.#timers].sort((a, b) => a.at - b.at);
      if (!settled && first !== undefined) this.advance(first.at - this.#time);
    }
    return promise;
  }

  /** Resolves when `count` requests have been sent in total. */
  async requests(count: number): Promise<void> {
    while (this.sent.length < count)
      await new Promise<void>((resolve) => this.#requestListeners.add(resolve));
  }

  connect(address: ServerAddress): Transport {
    this.addresses.push(address);
    return {
      request: (request) => this.#respond(request),
      close: async () => {
        this.closed += 1;
      },
    };
  }

  async #respond(request: TransportRequest): ReturnType<Transport['request']> {
    this.sent.push(request);
    this.sentAt.push(this.#time);
    for (const resolve of this.#requestListeners) resolve();
    const next = this.#script.shift() ?? 'never';
    if (next instanceof Error) throw next;
    if (next === 'never')
      return new Promise((_, reject) =>
        request.signal?.addEventListener('abort', () => reject(request.signal?.reason), { once: true }),
      );
    const { status, body = '', headers = {} } = next;
    return responseOf({ status, headers, body: typeof body === 'string' ? body : JSON.stringify(body) });
  }
}
