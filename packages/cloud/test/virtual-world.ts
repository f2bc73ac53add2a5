import type { ServerAddress, Transport, TransportRequest } from '@vmwright/core';
import { responseOf, VirtualClock } from '@vmwright/core/testing';
import type { CloudWorld } from '../src/client/world.ts';

/** Result of a request: a response, an Error to throw, or `never` for no response until the request is aborted. */
export type Scripted =
  | { readonly status: number; readonly body?: string | object; readonly headers?: Record<string, string> }
  | Error
  | 'never';

/** Environment of a client under test: a virtual clock, and a cloud that responds from a script. */
export class VirtualWorld extends VirtualClock implements CloudWorld {
  readonly sent: TransportRequest[] = [];
  readonly addresses: ServerAddress[] = [];
  /** Virtual time of each request in `sent`. */
  readonly sentAt: number[] = [];
  closed = 0;
  readonly #script: Scripted[];
  readonly #requestListeners = new Set<() => void>();

  constructor(...script: Scripted[]) {
    super(Date.parse('2026-01-01T00:00:00Z'));
    this.#script = script;
  }

  random(): number {
    return 0.5;
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
    this.sentAt.push(this.now());
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
