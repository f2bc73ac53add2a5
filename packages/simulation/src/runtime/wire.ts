import type { Transport, TransportRequest, World } from '@vmwright/runtime';
import type { ApiServer } from '../apiserver/api-server.ts';
import type { BufferedResponse, ModelRequest, ModelResponse, ModelServer } from '../world/server.ts';
import type { SimulatedWorld } from '../world/world.ts';

/** A request, and who has sent it. */
export interface Sent<S> {
  readonly sender: S;
  readonly method: TransportRequest['method'];
  readonly path: string;
}

const MARK = 'x-simulated-request';

/**
 * Stands before the API server and knows whose request it is that arrives, however late, which the server does not: so
 * invariants can tell who wrote what, and what was so when he sent it.
 */
export class Wire<S> implements ModelServer {
  readonly #server: ApiServer;
  readonly #sent = new Map<string, Sent<S>>();
  #count = 0;
  /** What the server acts on at this moment; undefined when nobody's request makes it act. */
  current: Sent<S> | undefined;
  /** Told of each write, right when it is sent. */
  onWrite: (sent: Sent<S>) => void = () => undefined;
  /** Told of each write, right before the server acts on it. */
  onLand: (sent: Sent<S>) => void = () => undefined;
  /** Whether a request never arrives, in silence. */
  loses: (sent: Sent<S>) => boolean = () => false;
  /** Told of each request that is not lost like this, right when it is sent. */
  onWay: (sent: Sent<S>) => void = () => undefined;
  /** Told of each request, before it is sent. */
  onSend: (sent: Sent<S>) => void = () => undefined;

  constructor(server: ApiServer) {
    this.#server = server;
  }

  /** The world of a process whose requests are marked as this sender's. */
  worldOf(world: SimulatedWorld, sender: S): World {
    return {
      now: () => world.now(),
      monotonic: () => world.monotonic(),
      after: (ms, callback) => world.after(ms, callback),
      random: () => world.random(),
      uuid: () => world.uuid(),
      connect: (address) => this.#marking(world.connect(address), sender),
    };
  }

  receive(request: ModelRequest): ModelResponse {
    const mark = request.headers[MARK] ?? '';
    this.current = this.#sent.get(mark);
    this.#sent.delete(mark);
    if (this.current !== undefined) this.onLand(this.current);
    try {
      return this.#server.receive(request);
    } finally {
      this.current = undefined;
    }
  }

  reject(status: 429 | 500, retryAfterSeconds?: number): BufferedResponse {
    return this.#server.reject(status, retryAfterSeconds);
  }

  #marking(transport: Transport, sender: S): Transport {
    return {
      request: (request) => {
        const { method, path } = request;
        const sent = { sender, method, path };
        this.onSend(sent);
        if (this.loses(sent)) return untilAborted(request.signal);
        this.onWay(sent);
        if (method === 'GET') return transport.request(request);
        const mark = String(this.#count++);
        this.#sent.set(mark, sent);
        this.onWrite(sent);
        return transport.request({ ...request, headers: { ...request.headers, [MARK]: mark } });
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
