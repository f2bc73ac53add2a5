import { connect as connectTcp, isIP, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls, getCACertificates, type TLSSocket } from 'node:tls';
import { messageOf } from '../../errors/message-of.ts';
import { type HttpProxy, ProxyError } from '../proxy.ts';
import type { ServerAddress, TlsOptions } from '../world.ts';

/** Timeout for all steps together: connecting to the proxy, opening the tunnel and the TLS handshake. */
const CONNECT_TIMEOUT_MS = 10_000;
/** Idle time after which TCP sends keep-alive probes, which detect a dead peer. */
const KEEP_ALIVE_MS = 30_000;

export interface SocketOptions {
  /** Protocols to offer (ALPN), in order of preference. */
  readonly protocols: readonly string[];
  readonly proxy?: HttpProxy | undefined;
}

/**
 * Opens a connection to a server and completes the TLS handshake if the address has TLS options.
 *
 * Through a proxy, a TLS connection is a tunnel to the server (CONNECT). A plain connection ends at the proxy, which
 * expects requests with absolute URLs.
 */
export async function openSocket(
  server: ServerAddress,
  { protocols, proxy }: SocketOptions,
): Promise<Socket | TLSSocket> {
  const { origin } = server;
  const { hostname, port, protocol } = new URL(origin);
  if (server.tls === undefined && protocol === 'https:')
    throw new Error(`${origin} requires TLS, but the server address has no TLS options`);
  const host = hostname.replace(/^\[|\]$/g, ''); // removes the brackets of an IPv6 address
  const target = { host, port: Number(port || (protocol === 'https:' ? 443 : 80)) };
  const timeout = new AbortController();
  const timer = setTimeout(
    () => timeout.abort(new Error(`no connection within ${CONNECT_TIMEOUT_MS / 1000} s`)),
    CONNECT_TIMEOUT_MS,
  );
  try {
    if (server.tls === undefined)
      return await (proxy === undefined
        ? plainSocket(target, timeout.signal)
        : proxySocket(proxy, undefined, timeout.signal));
    const tls = await server.tls();
    const authority = `${hostname}:${target.port}`;
    const tunnel = proxy && (await tunnelThrough(proxy, authority, tls.ca, timeout.signal));
    return await secureSocket(target, tls, { protocols, tunnel }, timeout.signal);
  } finally {
    clearTimeout(timer);
  }
}

interface Target {
  readonly host: string;
  readonly port: number;
}

function plainSocket(target: Target, signal: AbortSignal): Promise<Socket> {
  return opened(connectTcp({ ...target, ...TUNING }), 'connect', signal);
}

const TUNING = { noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS } as const;

async function secureSocket(
  target: Target,
  { ca, certificate, key, serverName, insecure, thumbprint }: TlsOptions,
  { protocols, tunnel }: { readonly protocols: readonly string[]; readonly tunnel?: Duplex | undefined },
  signal: AbortSignal,
): Promise<TLSSocket> {
  const socket = connectTls({
    ...target,
    ...TUNING,
    ...(tunnel !== undefined && { socket: tunnel }),
    ALPNProtocols: [...protocols],
    rejectUnauthorized: insecure !== true && thumbprint === undefined,
    ...(ca !== undefined && { ca }),
    ...(certificate !== undefined && { cert: certificate }),
    ...(key !== undefined && { key }),
    ...nameFor(target.host, serverName),
  });
  await opened(socket, 'secureConnect', signal);
  // Check the pinned thumbprint before anything is sent.
  const shown = socket.getPeerCertificate().fingerprint256?.replaceAll(':', '').toLowerCase();
  if (thumbprint === undefined || shown === thumbprint) return socket;
  socket.destroy();
  const message = `the server's certificate does not match the pinned thumbprint; its thumbprint is ${shown}`;
  throw Object.assign(new Error(message), { code: 'CERT_NOT_PINNED' });
}

/**
 * Returns the server name (SNI) by which servers choose their certificate. Node sends no name unless it is passed.
 * Returns no name for an IP address, because RFC 6066 does not allow IP addresses.
 */
function nameFor(host: string, serverName: string | undefined): { readonly servername?: string } {
  if (serverName !== undefined) return { servername: serverName };
  return isIP(host) === 0 ? { servername: host.replace(/\.$/, '') } : {};
}

/** Connects to the proxy. @param ca CA certificates to trust for the proxy, in addition to the system's */
function proxySocket(proxy: HttpProxy, ca: string | undefined, signal: AbortSignal): Promise<Socket> {
  const { protocol, host, port } = proxy;
  const connecting =
    protocol === 'http:'
      ? plainSocket({ host, port }, signal)
      : opened(
          connectTls({
            host,
            port,
            ...TUNING,
            ALPNProtocols: ['http/1.1'],
            ...nameFor(host, undefined),
            ...(ca !== undefined && { ca: [...getCACertificates('default'), ca] }),
          }),
          'secureConnect',
          signal,
        );
  return connecting.catch((cause: unknown) => {
    throw new ProxyError(`the proxy ${nameOf(proxy)} cannot be reached: ${messageOf(cause)}`, { cause });
  });
}

/** Opens a tunnel to `authority` through the proxy. @throws ProxyError */
async function tunnelThrough(
  proxy: HttpProxy,
  authority: string,
  ca: string | undefined,
  signal: AbortSignal,
): Promise<Duplex> {
  const { Client } = await import('undici'); // loaded only when a proxy is used: it takes 13 MB
  const client = new Client(`${proxy.protocol}//${nameOf(proxy)}`, {
    allowH2: false,
    connect: (_, done) =>
      void proxySocket(proxy, ca, signal).then(
        (socket) => done(null, socket),
        (error) => done(error, null),
      ),
  });
  const { authorization } = proxy;
  try {
    const { statusCode, socket } = await client.connect({
      path: authority,
      headers: {
        host: authority,
        ...(authorization !== undefined && { 'proxy-authorization': authorization }),
      },
      signal,
    });
    socket.on('error', () => undefined); // ignored here, because the TLS handshake reports errors once it has begun
    if (statusCode === 200) return socket;
    socket.destroy();
    const hint = statusCode === 407 ? ' (it requires a user and a password, or rejects the given ones)' : '';
    throw new ProxyError(
      `the proxy ${nameOf(proxy)} refused a connection to ${authority} with status ${statusCode}${hint}`,
    );
  } catch (cause) {
    // Never rethrow undici's own errors: its pool reconnects forever after some of them.
    if (cause instanceof ProxyError) throw cause;
    throw new ProxyError(`no connection to ${authority} through the proxy: ${messageOf(cause)}`, { cause });
  } finally {
    client.destroy().catch(() => undefined); // does not close the tunnel, which is detached from the client
  }
}

function nameOf({ host, port }: HttpProxy): string {
  return `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}

/** Waits until the socket is connected. Aborting destroys it. */
function opened<S extends Socket>(
  socket: S,
  event: 'connect' | 'secureConnect',
  signal: AbortSignal,
): Promise<S> {
  return new Promise((resolve, reject) => {
    const abort = () => socket.destroy(signal.reason);
    const fail = (error: Error) => {
      signal.removeEventListener('abort', abort);
      reject(error);
    };
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    socket.once('error', fail);
    socket.once(event, () => {
      signal.removeEventListener('abort', abort);
      socket.removeListener('error', fail);
      resolve(socket);
    });
  });
}
