import { type HttpProxy, type ProxyEnv, proxyFor, proxyFrom } from '../proxy.ts';
import type { ServerAddress, TlsOptions, Transport, TransportRequest, TransportResponse } from '../world.ts';
import { Http1Pool } from './http1.ts';
import { Http2Streams, NoHttp2Error } from './http2.ts';

/**
 * Maximum number of connections for short requests. Each request occupies one connection. More connections would only
 * cost handshakes and memory on the server.
 */
const MAX_CONNECTIONS = 8;

export interface TransportOptions {
  /**
   * Minimum interval between checks for rotated certificates, in milliseconds. Requests trigger the checks. @default
   * 10_000
   */
  readonly tlsCheckMs?: number;
  /** Environment with `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`. @default only `ServerAddress.proxy` is used */
  readonly env?: ProxyEnv;
}

/**
 * Returns a transport over persistent connections. Short requests use a few HTTP/1.1 connections, which are cheaper
 * than HTTP/2 for client and server (docs/internals/decisions/016). All watches share one HTTP/2 connection.
 *
 * When certificates are rotated, new connections replace the old ones, because the API server checks the expiry of a
 * client certificate on every request.
 * @throws ProxyError if the configured proxy is not supported
 */
export function connect(
  server: ServerAddress,
  { tlsCheckMs = 10_000, env = {} }: TransportOptions = {},
): Transport {
  const proxy =
    server.proxy === undefined ? proxyFor(server.origin, env) : proxyFrom(server.proxy, 'proxy-url');
  let connections = new Connections(server, proxy);
  let known: string | undefined;
  let checkedAt = Number.NEGATIVE_INFINITY;
  const checkTls = async ({ tls }: ServerAddress) => {
    if (tls === undefined || performance.now() - checkedAt < tlsCheckMs) return;
    checkedAt = performance.now();
    const current = fingerprint(await tls());
    if (known !== undefined && current !== known) {
      connections.retire();
      connections = new Connections(server, proxy);
    }
    known = current;
  };
  return {
    request: (request) => {
      // The request does not wait for the check and ignores its failure: if the certificates cannot be read, the
      // existing connections may still work.
      checkTls(server).catch(() => undefined);
      return connections.send(request);
    },
    close: async () => connections.close(),
  };
}

function fingerprint({ ca, certificate, key, serverName, insecure, thumbprint }: TlsOptions): string {
  return JSON.stringify([ca, certificate, key, serverName, insecure, thumbprint]);
}

/** All connections that were opened with the same certificates. */
class Connections {
  readonly #route: { readonly server: ServerAddress; readonly proxy: HttpProxy | undefined };
  readonly #short: Http1Pool;
  #lasting: Http1Pool | Http2Streams;

  constructor(server: ServerAddress, proxy: HttpProxy | undefined) {
    const route = { server, proxy };
    this.#route = route;
    this.#short = new Http1Pool({ ...route, connections: MAX_CONNECTIONS });
    this.#lasting = server.tls === undefined ? new Http1Pool(route) : new Http2Streams(route);
  }

  async send(request: TransportRequest): Promise<TransportResponse> {
    if (!request.lasting) return this.#short.send(request);
    const lasting = this.#lasting;
    try {
      return await lasting.send(request);
    } catch (error) {
      if (!(error instanceof NoHttp2Error)) throw error;
      // With a server that supports only HTTP/1.1, each watch uses its own connection.
      if (this.#lasting === lasting) this.#lasting = new Http1Pool(this.#route);
      return this.#lasting.send(request);
    }
  }

  /** Closes the connections when their running requests have ended. No request may be sent afterwards. */
  retire(): void {
    this.#short.retire();
    this.#lasting.retire();
  }

  close(): void {
    this.#short.close();
    this.#lasting.close();
  }
}
