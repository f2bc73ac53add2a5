import type { Transport, TransportRequest, World } from '@vmwright/runtime';
import type { ApiServer } from '../apiserver/api-server.ts';
import type { BufferedResponse, ModelRequest, ModelResponse, ModelServer } from '../world/server.ts';
import type { SimulatedWorld } from '../world/world.ts';

/** A request and its sender. */
export interface Sent<S> {
  readonly sender: S;
  readonly method: TransportRequest['method'];
  readonly path: string;
}

const REQUEST_ID = 'x-simulated-request';

/**
 * Proxy in front of the API server. It knows the sender of each request, even if the request arrives late, so that
 * invariants can attribute writes to replicas.
 */
export class Wire<S> implements ModelServer {
  readonly #server: ApiServer;
  readonly #sent = new Map<string, Sent<S>>();
  #count = 0;
  /** The write that the server is executing; undefined if there is none or its sender is unknown. */
  current: Sent<S> | undefined;
  /** Called when a write is sent. */
  onWrite: (sent: Sent<S>) => void = () => undefined;
  /** Called right before the server executes a write. */
  onArrival: (sent: Sent<S>) => void = () => undefined;
  /** Whether to drop a request silently. */
  drops: (sent: Sent<S>) => boolean = () => false;
  /** Called when a request is sent and not dropped. */
  onSent: (sent: Sent<S>) => void = () => undefined;
  /** Called before a request is sent or dropped. */
  onSend: (sent: Sent<S>) => void = () => undefined;

  constructor(server: ApiServer) {
    this.#server = server;
  }

  /** Returns the clock and network for a process. Requests over this network are attributed to `sender`. */
  worldOf(world: SimulatedWorld, sender: S): World {
    return {
      now: () => world.now(),
      monotonic: () => world.monotonic(),
      after: (ms, callback) => world.after(ms, callback),
      random: () => world.random(),
      uuid: () => world.uuid(),
      connect: (address) => this.#identifying(world.connect(address), sender),
    };
  }

  receive(request: ModelRequest): ModelResponse {
    const id = request.headers[REQUEST_ID] ?? '';
    this.current = this.#sent.get(id);
    this.#sent.delete(id);
    if (this.current !== undefined) this.onArrival(this.current);
    try {
      return this.#server.receive(request);
    } finally {
      this.current = undefined;
    }
  }

  reject(status: 429 | 500, retryAfterSeconds?: number): BufferedResponse {
    return this.#server.reject(status, retryAfterSeconds);
  }

  #identifying(transport: Transport, sender: S): Transport {
    return {
      request: (request) => {
        const { method, path } = request;
        const sent = { sender, method, path };
        this.onSend(sent);
        if (this.drops(sent)) return untilAborted(request.signal);
        this.onSent(sent);
        if (method === 'GET') return transport.request(request);
        const id = String(this.#count++);
        this.#sent.set(id, sent);
        this.onWrite(sent);
        return transport.request({ ...request, headers: { ...request.headers, [REQUEST_ID]: id } });
      },
      close: () => transport.close(),
    };
  }
}

function untilAborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
