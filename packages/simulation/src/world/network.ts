import { responseOf } from '@vmwright/core/testing';
import type { Transport, TransportRequest, TransportResponse } from '@vmwright/runtime';
import type { Choices } from './choices.ts';
import type { Counts } from './counts.ts';
import { type FaultRates, type RequestFault, requestFault, streamFault, USUAL_FAULTS } from './faults.ts';
import { InvariantError } from './invariant-error.ts';
import type { SimulatedProcess } from './process.ts';
import type { Schedule } from './schedule.ts';
import type { ModelResponse, ModelServer } from './server.ts';
import { Stream } from './stream.ts';
import type { Trace } from './trace.ts';
import { ENDED_TERM, isInEndedTerm } from './work-tracker.ts';

/**
 * Usual and maximum delay while no faults are injected. The maximum is lower than the 12 s of the fault phase. With
 * delays of 12 s, leaders would lose their leases repeatedly. Each new leader reconciles everything, which would hide
 * changes that the previous leader missed.
 */
const USUAL_MS = 50;
const MAX_CALM_MS = 2_000;
/** Maximum extra delay of a late request. */
export const MAX_LATE_MS = 31_000;

export interface NetworkParts {
  readonly schedule: Schedule;
  readonly choices: Choices;
  readonly trace: Trace;
  readonly counts: Counts;
}

interface Served {
  readonly server: ModelServer;
  readonly faults: FaultRates;
}

/**
 * The simulated network between processes and servers. Each request and response has a delay, and some are hit by a
 * fault (see `faults.ts`).
 *
 * Properties: a request may arrive long after its client timed out or crashed. A client without a response cannot know
 * whether the request was executed. The lines of one stream arrive in order.
 */
export class Network {
  readonly #parts: NetworkParts;
  readonly #servers = new Map<string, Served>();
  readonly #partitions = new Set<string>();
  /** Open streams by the origin of their server. */
  readonly #streams = new Map<string, Set<Stream>>();
  /** Whether faults are injected. Without faults, delays remain but are shorter. */
  faulty = false;

  /** Lateness of the next request in milliseconds; undefined if it is not late. */
  #nextLateMs: number | undefined;

  constructor(parts: NetworkParts) {
    this.#parts = parts;
  }

  /** Registers a server at an origin such as `https://api.simulated`. */
  serve(origin: string, server: ModelServer, faults: FaultRates = USUAL_FAULTS): void {
    this.#servers.set(origin, { server, faults });
  }

  /** Silently drops all traffic between a process and a server until `heal` is called. */
  partition(process: string, origin: string): void {
    this.#partitions.add(`${process} ${origin}`);
  }

  heal(process: string, origin: string): void {
    this.#partitions.delete(`${process} ${origin}`);
  }

  /** Breaks all streams of a server, as a restart does. */
  cut(origin: string): void {
    for (const stream of this.#streams.get(origin) ?? []) stream.break();
  }

  /** Makes the next request arrive late, unless it is lost. @param ms at most `MAX_LATE_MS` */
  delayNext(ms: number): void {
    this.#nextLateMs = ms;
  }

  connect(process: SimulatedProcess, origin: string): Transport {
    const open = new Set<Exchange>();
    return {
      request: (request) => this.#send(process, origin, request, open),
      close: async () => {
        for (const exchange of open) exchange.fail(new Error('the connection is closed'));
      },
    };
  }

  #send(
    process: SimulatedProcess,
    origin: string,
    request: TransportRequest,
    open: Set<Exchange>,
  ): Promise<TransportResponse> {
    const { signal } = request;
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (process.gone) return new Promise(() => undefined); // the process crashed earlier in this turn of the event loop
    const served = this.#servers.get(origin);
    if (served === undefined) return Promise.reject(new Error(`getaddrinfo ENOTFOUND ${origin}`));
    const { schedule, choices } = this.#parts;
    // Reads of vCenter are POST requests, so the method does not identify a change. Only changes have `beforeSend`, the
    // fence check.
    const isChange = request.method !== 'GET' && request.beforeSend !== undefined;
    if (isChange && isInEndedTerm())
      schedule.fail(new InvariantError(ENDED_TERM, `${process.name} sends ${nameOf(request)}`));
    const exchange = new Exchange(process, request, open);
    const lateMs = this.#nextLateMs;
    this.#nextLateMs = undefined;
    const fault = this.#isPartitioned(process, origin)
      ? choices.one(['half-open', 'lost'] as const)
      : this.faulty
        ? lateMs === undefined
          ? requestFault(choices, served.faults)
          : 'late'
        : undefined;
    if (fault !== undefined) this.#note(process, `${fault}: ${nameOf(request)}`, `request ${fault}`);
    switch (fault) {
      case 'half-open':
        break;
      case 'lost':
        schedule.after(this.#delay(), () => exchange.fail(new Error('connect ECONNREFUSED')), process);
        break;
      default: {
        const late = fault === 'late' ? (lateMs ?? 1_000 + choices.pick(MAX_LATE_MS - 1_000)) : 0;
        const arrive = () => this.#arrive(exchange, origin, served, fault);
        schedule.after(late + this.#delay(), arrive);
      }
    }
    return exchange.response;
  }

  #arrive(
    exchange: Exchange,
    origin: string,
    { server, faults }: Served,
    fault: RequestFault | undefined,
  ): void {
    const { request, process } = exchange;
    const { counts } = this.#parts;
    if (this.#isPartitioned(process, origin)) return;
    if (exchange.isOver) {
      if (request.method === 'GET') return; // no client is waiting, and a GET has no effect
      counts.add(process.gone ? 'request arrived after a crash' : 'request arrived after the client gave up');
    }
    const response = respond(server, request, fault, () => 1 + this.#parts.choices.pick(3));
    this.#note(process, `${nameOf(request)} → ${response.status}`);
    if (fault === 'answer lost') return;
    const error = fault === 'reset' ? new Error('read ECONNRESET') : undefined;
    this.#deliver(exchange, origin, response, faults, error);
  }

  #deliver(
    exchange: Exchange,
    origin: string,
    response: ModelResponse,
    faults: FaultRates,
    error: Error | undefined,
  ): void {
    const { schedule, choices } = this.#parts;
    const { process } = exchange;
    if (exchange.isOver) return;
    if (error !== undefined || !('open' in response)) {
      const arrive = () => {
        if (this.#isPartitioned(process, origin)) return;
        if (error !== undefined) exchange.fail(error);
        else if ('body' in response) exchange.resolve(responseOf(response));
      };
      schedule.after(this.#delay(), arrive, process);
      return;
    }
    const stream = new Stream(schedule, process, {
      delay: () => this.#delay(),
      fault: () => {
        if (this.#isPartitioned(process, origin)) return 'stalled';
        const found = this.faulty ? streamFault(choices, faults) : undefined;
        if (found !== undefined)
          this.#note(process, `${found}: ${nameOf(exchange.request)}`, `stream ${found}`);
        return found;
      },
    });
    exchange.onFail = (reason) => stream.fail(reason);
    const streams = this.#streams.get(origin) ?? new Set();
    this.#streams.set(origin, streams.add(stream));
    const close = response.open(stream);
    stream.onClose = () => {
      streams.delete(stream);
      close();
    };
    const head = {
      status: response.status,
      header: () => undefined,
      text: () => wholeOf(stream),
      lines: () => stream.lines(),
    };
    schedule.after(this.#delay(), () => exchange.resolve(head, true), process);
  }

  #delay(): number {
    const { choices } = this.#parts;
    return this.faulty ? choices.delay() : choices.delay(USUAL_MS, MAX_CALM_MS);
  }

  #isPartitioned(process: SimulatedProcess, origin: string): boolean {
    return this.#partitions.size > 0 && this.#partitions.has(`${process.name} ${origin}`);
  }

  #note({ name }: SimulatedProcess, what: string, counted?: string): void {
    const { schedule, trace, counts } = this.#parts;
    trace.note(schedule.now, name, what);
    if (counted !== undefined) counts.add(counted);
  }
}

/** Tracks a request of a process until its full response has arrived, or until it failed or was aborted. */
class Exchange {
  readonly process: SimulatedProcess;
  readonly request: TransportRequest;
  readonly response: Promise<TransportResponse>;
  onFail: ((reason: Error) => void) | undefined;
  readonly #open: Set<Exchange>;
  readonly #settle: PromiseWithResolvers<TransportResponse>;
  readonly #onAbort = () => this.#fail(toError(this.request.signal?.reason));
  readonly #unregister: () => void;
  #isSettled = false;

  constructor(process: SimulatedProcess, request: TransportRequest, open: Set<Exchange>) {
    this.process = process;
    this.request = request;
    this.#open = open;
    this.#settle = Promise.withResolvers();
    this.response = this.#settle.promise;
    request.signal?.addEventListener('abort', this.#onAbort, { once: true });
    this.#unregister = process.onCrash(() => {
      this.onFail?.(new Error('the process crashed')); // the client's socket closes, and the server stops sending
      this.#end();
    });
    open.add(this);
  }

  get isOver(): boolean {
    return this.#isSettled;
  }

  /** @param lasting whether the body is a stream, which arrives later */
  resolve(response: TransportResponse, lasting = false): void {
    this.process.enter(() => {
      if (this.#isSettled) return;
      if (!lasting) this.#end();
      this.#settle.resolve(response);
    });
  }

  fail(error: Error): void {
    this.process.enter(() => this.#fail(error));
  }

  #fail(error: Error): void {
    if (this.#isSettled) return;
    this.#end();
    this.onFail?.(error);
    this.#settle.reject(error);
  }

  #end(): void {
    this.#isSettled = true;
    this.#open.delete(this);
    this.#unregister();
    this.request.signal?.removeEventListener('abort', this.#onAbort);
  }
}

function respond(
  server: ModelServer,
  request: TransportRequest,
  fault: RequestFault | undefined,
  retryAfterSeconds: () => number,
): ModelResponse {
  if (fault === 'refused') return server.reject(500);
  if (fault === 'throttled') return server.reject(429, retryAfterSeconds());
  return server.receive(request);
}

async function wholeOf(stream: Stream): Promise<string> {
  const lines = await Array.fromAsync(stream.lines());
  return lines.join('\n');
}

function nameOf({ method, path }: TransportRequest): string {
  return `${method} ${path}`;
}

function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
