import { type HttpProxy, type ProxyEnv, proxyFor, proxyFrom } from '../proxy.ts';
import type { ServerAddress, TlsOptions, Transport, TransportRequest, TransportResponse } from '../world.ts';
import { Http1Pool } from './http1.ts';
import { Http2Streams, NoHttp2Error } from './http2.ts';

/** Requests under way at a time; more than the API server works on at once only costs handshakes and memory. */
const CONNECTIONS = 8;

export interface TransportOptions {
  /** How often, at most, certificates are looked at again while there are requests. @default 10_000 */
  readonly lookMs?: number;
  /** Where `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` are read. @default no proxies but the server's own */
  readonly env?: ProxyEnv;
}

/**
 * HTTP over kept connections: a few of HTTP/1.1 for requests, which costs both sides less (docs/internals/decisions/016), and one
 * of HTTP/2 for all watches. Rotated certificates are picked up by new connections, which then replace the old ones: a
 * server checks the expiry of a client's certificate with every request.
 * @throws ProxyError if the settings name a proxy that cannot be used
 */
export function connect(
  server: ServerAddress,
  { lookMs = 10_000, env = {} }: TransportOptions = {},
): Transport {
  const proxy =
    server.proxy === undefined ? proxyFor(server.origin, env) : proxyFrom(server.proxy, 'proxy-url');
  let connections = new Connections(server, proxy);
  let known: string | undefined;
  let lookedAt = Number.NEGATIVE_INFINITY;
  const look = async ({ tls }: ServerAddress) => {
    if (tls === undefined || performance.now() - lookedAt < lookMs) return;
    lookedAt = performance.now();
    const now = fingerprint(await tls());
    if (known !== undefined && now !== known) {
      connections.retire();
      connections = new Connections(server, proxy);
    }
    known = now;
  };
  return {
    request: (request) => {
      // Beside the request, not before it: where they cannot be read, those in use may still do.
      look(server).catch(() => undefined);
      return connections.send(request);
    },
    close: async () => connections.close(),
  };
}

function fingerprint({ ca, certificate, key, serverName, insecure, thumbprint }: TlsOptions): string {
  return JSON.stringify([ca, certificate, key, serverName, insecure, thumbprint]);
}

/** All that were made with the same certificates. */
class Connections {
  readonly #route: { readonly server: ServerAddress; readonly proxy: HttpProxy | undefined };
  readonly #brief: Http1Pool;
  #lasting: Http1Pool | Http2Streams;

  constructor(server: ServerAddress, proxy: HttpProxy | undefined) {
    const route = { server, proxy };
    this.#route = route;
    this.#brief = new Http1Pool({ ...route, connections: CONNECTIONS });
    this.#lasting = server.tls === undefined ? new Http1Pool(route) : new Http2Streams(route);
  }

  async send(request: TransportRequest): Promise<TransportResponse> {
    if (!request.lasting) return this.#brief.send(request);
    const lasting = this.#lasting;
    try {
      return await lasting.send(request);
    } catch (error) {
      if (!(error instanceof NoHttp2Error)) throw error;
      // Where the server speaks only HTTP/1.1, each watch has a connection of its own.
      if (this.#lasting === lasting) this.#lasting = new Http1Pool(this.#route);
      return this.#lasting.send(request);
    }
  }

  /** What is under way ends by itself. */
  retire(): void {
    this.#brief.retire();
    this.#lasting.retire();
  }

  close(): void {
    this.#brief.close();
    this.#lasting.close();
  }
}
