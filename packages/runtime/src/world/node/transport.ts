import type { ServerAddress, TlsOptions, Transport, TransportRequest, TransportResponse } from '../world.ts';
import { Http1Pool } from './http1.ts';
import { Http2Streams, NoHttp2Error } from './http2.ts';

/** Requests under way at a time; more than the API server works on at once only costs handshakes and memory. */
const CONNECTIONS = 8;

export interface TransportOptions {
  /** How often, at most, certificates are looked at again while there are requests. @default 10_000 */
  readonly lookMs?: number;
}

/**
 * HTTP over kept connections: a few of HTTP/1.1 for requests, which costs both sides less (docs/decisions/008), and one
 * of HTTP/2 for all watches. Certificates that have been rotated are taken up by new connections, which then replace the
 * old: a server looks at the expiry of a client's certificate with every request.
 */
export function connect(server: ServerAddress, { lookMs = 10_000 }: TransportOptions = {}): Transport {
  let connections = new Connections(server);
  let known: string | undefined;
  let lookedAt = Number.NEGATIVE_INFINITY;
  const look = async ({ tls }: ServerAddress) => {
    if (tls === undefined || performance.now() - lookedAt < lookMs) return;
    lookedAt = performance.now();
    const now = fingerprint(await tls());
    if (known !== undefined && now !== known) {
      connections.retire();
      connections = new Connections(server);
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
  readonly #server: ServerAddress;
  readonly #brief: Http1Pool;
  #lasting: Http1Pool | Http2Streams;

  constructor(server: ServerAddress) {
    const { tls } = server;
    this.#server = server;
    this.#brief = new Http1Pool({ server, connections: CONNECTIONS });
    this.#lasting = tls === undefined ? new Http1Pool({ server }) : new Http2Streams({ server });
  }

  async send(request: TransportRequest): Promise<TransportResponse> {
    if (!request.lasting) return this.#brief.send(request);
    const lasting = this.#lasting;
    try {
      return await lasting.send(request);
    } catch (error) {
      if (!(error instanceof NoHttp2Error)) throw error;
      // Behind a proxy that speaks HTTP/1.1 alone, each watch has a connection of its own.
      if (this.#lasting === lasting) this.#lasting = new Http1Pool({ server: this.#server });
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
