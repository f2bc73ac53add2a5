import type { buildConnector, Dispatcher, Pool as PoolType } from 'undici';
import buildTlsConnector from 'undici/lib/core/connect.js';
import Pool from 'undici/lib/dispatcher/pool.js';
import { messageOf } from '../../errors.ts';
import type { ServerAddress, TlsOptions, TransportRequest, TransportResponse } from '../world.ts';
import { Body } from './body.ts';

export const CONNECT_TIMEOUT_MS = 10_000;

/** Connections that take a request at a time each. @param connections at most; without, as many as there are requests */
export function http1Pool({ origin, tls }: ServerAddress, connections?: number): PoolType {
  return new Pool(origin, {
    allowH2: false,
    pipelining: 1,
    bodyTimeout: 0, // a watch may be silent; the reflector tells a dead one from a quiet one
    headersTimeout: 0, // the client has deadlines of its own
    keepAliveTimeout: 30_000,
    connect: tls === undefined ? { timeout: CONNECT_TIMEOUT_MS } : connector(tls),
    ...(connections !== undefined && { connections }),
  });
}

function connector(tls: () => Promise<TlsOptions>): buildConnector.connector {
  return (options, callback) => {
    tls().then(
      ({ ca, certificate, key, serverName, insecure }) => {
        const connectTls = buildTlsConnector({
          allowH2: false, // asked for here as well: by default the connector offers HTTP/2
          timeout: CONNECT_TIMEOUT_MS,
          rejectUnauthorized: insecure !== true,
          ...(ca !== undefined && { ca }),
          ...(certificate !== undefined && { cert: certificate }),
          ...(key !== undefined && { key }),
          ...(serverName !== undefined && { servername: serverName }),
        });
        connectTls(options, callback);
      },
      (error) => callback(toError(error), null),
    );
  };
}

export function sendOver(
  pool: Dispatcher,
  { method, path, headers, body, signal }: TransportRequest,
): Promise<TransportResponse> {
  if (signal?.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const handler = new Handler(resolve, reject, signal);
    pool.dispatch({ method, path, headers, body: body ?? null }, handler);
  });
}

class Handler implements Dispatcher.DispatchHandler {
  readonly #resolve: (response: TransportResponse) => void;
  readonly #reject: (error: unknown) => void;
  readonly #signal: AbortSignal | undefined;
  #body: Body | undefined;
  #abort: (() => void) | undefined;

  constructor(
    resolve: (response: TransportResponse) => void,
    reject: (error: unknown) => void,
    signal: AbortSignal | undefined,
  ) {
    this.#resolve = resolve;
    this.#reject = reject;
    this.#signal = signal;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    const signal = this.#signal;
    if (signal === undefined) return;
    this.#abort = () => controller.abort(toError(signal.reason));
    if (signal.aborted) this.#abort();
    else signal.addEventListener('abort', this.#abort, { once: true });
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    if (status < 200) return;
    const body = new Body(controller);
    this.#body = body;
    this.#resolve(body.response(status, headers));
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#body?.push(chunk);
  }

  onResponseEnd(): void {
    this.#release();
    this.#body?.end();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#release();
    if (this.#body === undefined) this.#reject(error);
    else this.#body.fail(error);
  }

  #release(): void {
    if (this.#abort !== undefined) this.#signal?.removeEventListener('abort', this.#abort);
  }
}

export function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(messageOf(reason));
}
