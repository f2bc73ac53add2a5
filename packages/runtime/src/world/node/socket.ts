import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { ServerAddress } from '../world.ts';

const CONNECT_TIMEOUT_MS = 10_000;

export interface SocketOptions {
  /** What we speak, in the order of our liking. */
  readonly protocols: readonly string[];
  /** Gets what arrives, in memory that is used again. Without, the socket is a stream. */
  readonly onread?: {
    readonly buffer: Buffer;
    readonly callback: (bytes: number, buffer: Buffer) => boolean;
  };
}

/** A connection, encrypted where the address says so, once it stands. */
export async function openSocket(
  { origin, tls }: ServerAddress,
  { protocols, onread }: SocketOptions,
): Promise<Socket | TLSSocket> {
  const { hostname, port, protocol } = new URL(origin);
  const host = hostname.replace(/^\[|\]$/g, ''); // as IPv6 is written in addresses
  const to = {
    host,
    port: Number(port || (protocol === 'https:' ? 443 : 80)),
    noDelay: true,
    ...(onread && { onread: { ...onread } }),
  };
  if (tls === undefined && protocol === 'https:')
    throw new Error(`${origin} is to be asked over TLS, and nobody says whom to trust`);
  if (tls === undefined) return opened(connectTcp(to), 'connect');
  const { ca, certificate, key, serverName, insecure, thumbprint } = await tls();
  const socket = connectTls({
    ...to,
    ALPNProtocols: [...protocols],
    rejectUnauthorized: insecure !== true && thumbprint === undefined,
    ...(ca !== undefined && { ca }),
    ...(certificate !== undefined && { cert: certificate }),
    ...(key !== undefined && { key }),
    ...nameFor(host, serverName),
  });
  await opened(socket, 'secureConnect');
  // Before anything is sent over it.
  const shown = socket.getPeerCertificate().fingerprint256?.replaceAll(':', '').toLowerCase();
  if (thumbprint === undefined || shown === thumbprint) return socket;
  socket.destroy();
  const words = `the server shows another certificate than the pinned one, with the thumbprint ${shown}`;
  throw Object.assign(new Error(words), { code: 'CERT_NOT_PINNED' });
}

/**
 * The server name to send (SNI), by which servers choose their certificate. Node sends none by itself, and RFC 6066
 * allows no addresses.
 */
function nameFor(host: string, serverName: string | undefined): { readonly servername?: string } {
  if (serverName !== undefined) return { servername: serverName };
  return isIP(host) === 0 ? { servername: host.replace(/\.$/, '') } : {};
}

function opened<S extends Socket>(socket: S, event: 'connect' | 'secureConnect'): Promise<S> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => {
      socket.destroy(new Error(`no connection within ${CONNECT_TIMEOUT_MS / 1000} s`));
    }, CONNECT_TIMEOUT_MS);
    const fail = (error: Error) => {
      clearTimeout(late);
      reject(error);
    };
    socket.once('error', fail);
    socket.once(event, () => {
      clearTimeout(late);
      socket.removeListener('error', fail);
      resolve(socket);
    });
  });
}
