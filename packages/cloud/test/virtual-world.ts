import type { ServerAddress, Timer, Transport, TransportRequest } from '@vmwright/core';
import { responseOf } from '@vmwright/core/testing';
import type { CloudWorld } from '../src/client/world.ts';

interface Alarm {
  readonly at: number;
  readonly callback: () => void;
}

/** What a request is answered with; an error for none. */
export type Scripted =
  | { readonly status: number; readonly body?: string | object; readonly headers?: Record<string, string> }
  | Error
  | 'never';

/** Time that stands still until it is told to go on, and a cloud that answers from a script. */
export class VirtualWorld implements CloudWorld {
  readonly sent: TransportRequest[] = [];
  readonly addresses: ServerAddress[] = [];
  /** When each of them was sent. */
  readonly sentAt: number[] = [];
  closed = 0;
  readonly #script: Scripted[];
  readonly #alarms = new Set<Alarm>();
  readonly #awaited = new Set<() => void>();
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
    const alarm = { at: this.#time + Math.max(ms, 0), callback };
    this.#alarms.add(alarm);
    return { cancel: () => void this.#alarms.delete(alarm) };
  }

  get alarms(): number {
    return this.#alarms.size;
  }

  /** Lets time pass; what is due on the way goes off in order. */
  advance(ms: number): void {
    const end = this.#time + ms;
    for (;;) {
      const next = [...this.#alarms].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#alarms.delete(next);
      this.#time = Math.max(this.#time, next.at);
      next.callback();
    }
    this.#time = end;
  }

  /** Goes on to each next alarm until what is waited for is there. */
  async until<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const done = () => {
      settled = true;
    };
    promise.then(done, done);
    while (!settled) {
      for (let turn = 0; turn < 20 && !settled; turn++) await Promise.resolve();
      const [first] = [...this.#alarms].sort((a, b) => a.at - b.at);
      if (!settled && first !== undefined) this.advance(first.at - this.#time);
    }
    return promise;
  }

  /** Resolves when so many requests have been sent. */
  async requests(count: number): Promise<void> {
    while (this.sent.length < count) await new Promise<void>((resolve) => this.#awaited.add(resolve));
  }

  connect(address: ServerAddress): Transport {
    this.addresses.push(address);
    return {
      request: (request) => this.#answer(request),
      close: async () => {
        this.closed += 1;
      },
    };
  }

  async #answer(request: TransportRequest): ReturnType<Transport['request']> {
    this.sent.push(request);
    this.sentAt.push(this.#time);
    for (const resolve of this.#awaited) resolve();
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
