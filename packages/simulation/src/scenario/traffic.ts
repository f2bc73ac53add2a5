import type { Transport, TransportRequest } from '@vmwright/runtime';
import type { FaultRates } from '../world/faults.ts';
import type { ModelServer } from '../world/server.ts';
import type { Simulation } from '../world/simulation.ts';

/** How long after its sending a request may still land: the longest lateness and the longest delay. */
const LONGEST_WAY_MS = 45_000;

/** By which a request is known again when it lands. */
const SERIAL = 'x-simulated-request';

/** A request of a replica that may change something. */
export interface Sent {
  /** Which process, in which of its lives: `alpha.2`. */
  readonly sender: string;
  readonly origin: string;
  readonly method: TransportRequest['method'];
  readonly path: string;
  readonly body: string | undefined;
  /** When it was sent, in virtual milliseconds. */
  readonly at: number;
  /** When it was carried out. A refused one never is. */
  landedAt: number | undefined;
  /** What its sender knows. One that has crashed waits for ever. */
  seen: 'nothing yet' | 'an answer' | 'that none comes';
}

/**
 * All writes of replicas, with their senders: what no server of the real world can tell, and invariants ask for. Reads
 * pass by unseen.
 */
export class Traffic {
  readonly #simulation: Simulation;
  readonly #sent = new Map<string, Sent>();
  readonly #onSend: ((sent: Sent) => void)[] = [];
  readonly #onLand: ((sent: Sent) => void)[] = [];
  readonly #onEnd: ((sent: Sent) => void)[] = [];
  #serial = 0;
  #landing: Sent | undefined;

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
  }

  /** The write of a replica that a server is carrying out at this moment; undefined for everybody else's. */
  get landing(): Sent | undefined {
    return this.#landing;
  }

  /** Puts a server at an origin, and tells of what lands at it. */
  serve(origin: string, server: ModelServer, faults?: FaultRates): void {
    const observed: ModelServer = {
      receive: (arrived) => {
        const sent = this.#sent.get(arrived.headers[SERIAL] ?? '');
        if (sent !== undefined) {
          sent.landedAt = this.#simulation.schedule.now;
          for (const tell of this.#onLand) tell(sent);
        }
        this.#landing = sent;
        try {
          return server.receive(arrived);
        } finally {
          this.#landing = undefined;
        }
      },
      reject: (status, retryAfterSeconds) => server.reject(status, retryAfterSeconds),
    };
    this.#simulation.network.serve(origin, observed, faults);
  }

  /** Right before it goes onto the wire. */
  onSend(listener: (sent: Sent) => void): void {
    this.#onSend.push(listener);
  }

  /** Right before the server acts on it. */
  onLand(listener: (sent: Sent) => void): void {
    this.#onLand.push(listener);
  }

  /** When its sender has an answer, or has given up. */
  onEnd(listener: (sent: Sent) => void): void {
    this.#onEnd.push(listener);
  }

  /** What has not landed, and may. */
  *onTheWire(): Generator<Sent, void, undefined> {
    const { now } = this.#simulation.schedule;
    for (const [serial, sent] of this.#sent) {
      if (sent.at < now - LONGEST_WAY_MS) this.#sent.delete(serial);
      else if (sent.landedAt === undefined && sent.seen !== 'an answer') yield sent;
    }
  }

  /** What has landed at this origin, and its sender does not know yet: what he does next may depend on it. */
  *unanswered(origin: string): Generator<Sent, void, undefined> {
    const oldest = this.#simulation.schedule.now - LONGEST_WAY_MS;
    for (const sent of this.#sent.values()) {
      const isOpen = sent.landedAt !== undefined && sent.seen === 'nothing yet' && sent.at >= oldest;
      if (isOpen && sent.origin === origin) yield sent;
    }
  }

  /** The same connection, whose writes are seen. */
  seen(transport: Transport, sender: string, origin: string): Transport {
    return {
      request: (request) => {
        if (request.method === 'GET') return transport.request(request);
        const { method, path, body } = request;
        const at = this.#simulation.schedule.now;
        const sent: Sent = {
          sender,
          origin,
          method,
          path,
          body,
          at,
          landedAt: undefined,
          seen: 'nothing yet',
        };
        this.#serial += 1;
        const serial = String(this.#serial);
        this.#sent.set(serial, sent);
        for (const tell of this.#onSend) tell(sent);
        const answer = transport.request({ ...request, headers: { ...request.headers, [SERIAL]: serial } });
        answer.then(
          () => this.#end(sent, 'an answer'),
          () => this.#end(sent, 'that none comes'),
        );
        return answer;
      },
      close: () => transport.close(),
    };
  }

  #end(sent: Sent, seen: Sent['seen']): void {
    sent.seen = seen;
    for (const tell of this.#onEnd) tell(sent);
  }
}
