import type { Transport, TransportRequest } from '@vmwright/runtime';
import type { FaultRates } from '../world/faults.ts';
import type { ModelServer } from '../world/server.ts';
import type { Simulation } from '../world/simulation.ts';

/** Maximum time from sending until arrival of a request: the maximum delay plus the extra delay of a late request. */
const MAX_TRANSIT_MS = 45_000;

/** Headers by which an arriving request is recognized: the id of a write, and the sender of a read. */
const SERIAL = 'x-simulated-request';
const SENDER = 'x-simulated-sender';

/** A write request of a replica. */
export interface Sent {
  /** Name and incarnation of the sender: `alpha.2`. */
  readonly sender: string;
  readonly origin: string;
  readonly method: TransportRequest['method'];
  readonly path: string;
  readonly body: string | undefined;
  /** Virtual time at which the request was sent, in milliseconds. */
  readonly at: number;
  /** Virtual time of the execution; undefined if the request has not arrived or the network rejected it. */
  arrivedAt: number | undefined;
  /**
   * What the sender has received:
   * - `pending`: nothing yet. A request of a crashed process stays pending.
   * - `answered`: a response.
   * - `failed`: an error instead of a response.
   */
  outcome: 'pending' | 'answered' | 'failed';
}

/** A read request of a replica that has arrived at a server. */
export interface Read {
  readonly sender: string;
  readonly path: string;
}

/**
 * Tracks all writes of replicas and their senders. Invariants need the sender, which real servers do not know. Reads
 * are not tracked, only reported when they arrive.
 */
export class Traffic {
  readonly #simulation: Simulation;
  readonly #sent = new Map<string, Sent>();
  readonly #onSend: ((sent: Sent) => void)[] = [];
  readonly #onArrival: ((sent: Sent) => void)[] = [];
  readonly #onEnd: ((sent: Sent) => void)[] = [];
  readonly #onRead: ((read: Read) => void)[] = [];
  #serial = 0;
  #arriving: Sent | undefined;

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
  }

  /** The write that a server is executing; undefined if there is none or no replica sent it. */
  get arriving(): Sent | undefined {
    return this.#arriving;
  }

  /** Registers a server at an origin and tracks the writes that arrive there. */
  serve(origin: string, server: ModelServer, faults?: FaultRates): void {
    const observed: ModelServer = {
      receive: (arrived) => {
        const sent = this.#sent.get(arrived.headers[SERIAL] ?? '');
        if (sent !== undefined) {
          sent.arrivedAt = this.#simulation.schedule.now;
          for (const notify of this.#onArrival) notify(sent);
        }
        const { [SENDER]: sender } = arrived.headers;
        if (sender !== undefined) for (const notify of this.#onRead) notify({ sender, path: arrived.path });
        this.#arriving = sent;
        try {
          return server.receive(arrived);
        } finally {
          this.#arriving = undefined;
        }
      },
      reject: (status, retryAfterSeconds) => server.reject(status, retryAfterSeconds),
    };
    this.#simulation.network.serve(origin, observed, faults);
  }

  /** Calls the listener right before a write is sent. */
  onSend(listener: (sent: Sent) => void): void {
    this.#onSend.push(listener);
  }

  /** Calls the listener right before the server executes a write. */
  onArrival(listener: (sent: Sent) => void): void {
    this.#onArrival.push(listener);
  }

  /** Calls the listener right before the server executes a read. */
  onRead(listener: (read: Read) => void): void {
    this.#onRead.push(listener);
  }

  /** Calls the listener when the sender has received a response or an error. */
  onEnd(listener: (sent: Sent) => void): void {
    this.#onEnd.push(listener);
  }

  /** Yields the writes that have not arrived but still can. */
  *inFlight(): Generator<Sent, void, undefined> {
    const { now } = this.#simulation.schedule;
    for (const [serial, sent] of this.#sent) {
      if (sent.at < now - MAX_TRANSIT_MS) this.#sent.delete(serial);
      else if (sent.arrivedAt === undefined && sent.outcome !== 'answered') yield sent;
    }
  }

  /**
   * Yields the writes that the server at this origin has executed, but that the sender has no response to yet. The
   * sender's next step may depend on the response.
   */
  *unanswered(origin: string): Generator<Sent, void, undefined> {
    const oldest = this.#simulation.schedule.now - MAX_TRANSIT_MS;
    for (const sent of this.#sent.values()) {
      const isOpen = sent.arrivedAt !== undefined && sent.outcome === 'pending' && sent.at >= oldest;
      if (isOpen && sent.origin === origin) yield sent;
    }
  }

  /** Wraps a transport and tracks its writes. */
  observe(transport: Transport, sender: string, origin: string): Transport {
    return {
      request: (request) => {
        if (request.method === 'GET')
          return transport.request({ ...request, headers: { ...request.headers, [SENDER]: sender } });
        const { method, path, body } = request;
        const at = this.#simulation.schedule.now;
        const sent: Sent = {
          sender,
          origin,
          method,
          path,
          body,
          at,
          arrivedAt: undefined,
          outcome: 'pending',
        };
        this.#serial += 1;
        const serial = String(this.#serial);
        this.#sent.set(serial, sent);
        for (const notify of this.#onSend) notify(sent);
        const answer = transport.request({ ...request, headers: { ...request.headers, [SERIAL]: serial } });
        answer.then(
          () => this.#end(sent, 'answered'),
          () => this.#end(sent, 'failed'),
        );
        return answer;
      },
      close: () => transport.close(),
    };
  }

  #end(sent: Sent, outcome: Sent['outcome']): void {
    sent.outcome = outcome;
    for (const notify of this.#onEnd) notify(sent);
  }
}
