import { once } from 'node:events';
import {
  createServer as createHttpServer,
  type Server as HttpServer,
  request as requestHttp,
} from 'node:http';
import { createSecureServer } from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import { connect as connectTcp } from 'node:net';
import { CertificateAuthority } from '@vmwright/runtime/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { listen } from '../../testing/servers.ts';
import { ProxyError } from '../proxy.ts';
import type { ServerAddress } from '../world.ts';
import { connect, type TransportOptions } from './transport.ts';

const DAY_MS = 86_400_000;
const validity = { notBefore: new Date(Date.now() - DAY_MS), notAfter: new Date(Date.now() + DAY_MS) };
const ca = CertificateAuthority.create({ commonName: 'test' }, validity);

function identityOf(...names: string[]) {
  const identity = ca.issue({
    subject: { commonName: names[0] ?? '' },
    usage: ['server'],
    names,
    ...validity,
  });
  return { cert: identity.certificate, key: identity.key };
}

interface SeenRequest {
  readonly line: string;
  readonly authorization: string | undefined;
}

/**
 * Starts a proxy that resolves every name to 127.0.0.1 and records its requests.
 * @param status status code and reason with which the proxy rejects CONNECT; if undefined, it accepts CONNECT
 */
async function startProxy(protocol: 'http' | 'https', { status }: { readonly status?: string } = {}) {
  const seen: SeenRequest[] = [];
  const server: HttpServer =
    protocol === 'http' ? createHttpServer() : createHttpsServer(identityOf('127.0.0.1'));
  server.on('connect', (request, socket, head) => {
    seen.push({ line: `CONNECT ${request.url}`, authorization: request.headers['proxy-authorization'] });
    if (status !== undefined) return socket.end(`HTTP/1.1 ${status}\r\n\r\n`);
    const onward = connectTcp(Number(request.url?.split(':').at(-1)), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      onward.write(head);
      socket.pipe(onward).pipe(socket);
    });
    for (const end of [socket, onward]) end.on('error', () => undefined);
    onTestFinished(() => void onward.destroy());
  });
  server.on('request', (request, response) => {
    seen.push({
      line: `${request.method} ${request.url}`,
      authorization: request.headers['proxy-authorization'],
    });
    const { port, pathname } = new URL(request.url ?? '');
    const options = { host: '127.0.0.1', port, path: pathname, headers: { host: request.headers.host } };
    requestHttp(options, (upstream) => upstream.pipe(response)).end();
  });
  return { url: `${protocol}://127.0.0.1:${await listen(server, onTestFinished)}`, seen };
}

/** Starts a server for HTTP/2 and HTTP/1.1 under a name that only the proxy can resolve. */
async function startServer(): Promise<string> {
  const server = createSecureServer({ ...identityOf('api.example'), allowHTTP1: true });
  server.on('request', (request, response) => response.end(`${request.httpVersion} ${request.url}\n`));
  return `https://api.example:${await listen(server, onTestFinished)}`;
}

function opened(server: ServerAddress, options?: TransportOptions) {
  const transport = connect(server, options);
  onTestFinished(() => transport.close());
  return async (path: string, lasting = false) => {
    const response = await transport.request({ method: 'GET', path, headers: {}, lasting });
    return response.text();
  };
}

const tls = async () => ({ ca: ca.certificate });

describe.each(['http', 'https'] as const)('through an %s proxy', (protocol) => {
  test('requests and watches use a tunnel, and the server certificate is verified', async () => {
    const origin = await startServer();
    const { url, seen } = await startProxy(protocol);
    const get = opened({ origin, tls, proxy: url });
    expect(await get('/request')).toBe('1.1 /request\n');
    expect(await get('/watch', true)).toBe('2.0 /watch\n');
    expect(seen.map(({ line }) => line)).toEqual([
      `CONNECT ${new URL(origin).host}`,
      `CONNECT ${new URL(origin).host}`,
    ]);
    const distrusting = opened({ origin, tls: async () => ({ ca: identityOf('x').cert }), proxy: url });
    await expect(distrusting('/')).rejects.toThrow(/certificate|cannot be reached/);
  });

  test('the user and the password in the proxy URL are sent to the proxy', async () => {
    const origin = await startServer();
    const { url, seen } = await startProxy(protocol);
    await opened({ origin, tls, proxy: url.replace('://', '://user:s3cret@') })('/');
    expect(seen[0]?.authorization).toBe(`Basic ${Buffer.from('user:s3cret').toString('base64')}`);
  });

  test.each([
    ['407 Proxy Authentication Required', 'requires a user and a password'],
    ['403 Forbidden', 'refused a connection'],
    ['502 Bad Gateway', 'with status 502'],
  ])('a proxy that responds with %s causes a ProxyError without the password', async (status, message) => {
    const origin = await startServer();
    const { url } = await startProxy(protocol, { status });
    const get = opened({ origin, tls, proxy: url.replace('://', '://user:s3cret@') });
    for (const lasting of [false, true]) {
      const error: unknown = await get('/', lasting).catch((caught) => caught);
      expect(error).toBeInstanceOf(ProxyError);
      expect(String(error)).toContain(message);
      expect(String(error)).not.toContain('s3cret');
    }
  });
});

test('requests through a proxy to a plain HTTP server use absolute URLs', async () => {
  const server = createHttpServer((request, response) => response.end(`${request.headers.host}`));
  const origin = `http://cloud.example:${await listen(server, onTestFinished)}`;
  const { url, seen } = await startProxy('http');
  const get = opened({ origin, proxy: url.replace('://', '://user:s3cret@') });
  expect(await get('/servers')).toBe(new URL(origin).host);
  expect(await get('/watch', true)).toBe(new URL(origin).host);
  const authorization = `Basic ${Buffer.from('user:s3cret').toString('base64')}`;
  expect(seen).toEqual([
    { line: `GET ${origin}/servers`, authorization },
    { line: `GET ${origin}/watch`, authorization },
  ]);
});

test('a proxy that is unreachable or closes the connection causes a ProxyError without a retry', async () => {
  const origin = await startServer();
  const gone = createHttpServer();
  const port = await listen(gone, onTestFinished);
  gone.close();
  await once(gone, 'close');
  await expect(opened({ origin, tls, proxy: `http://127.0.0.1:${port}` })('/')).rejects.toThrow(
    `the proxy 127.0.0.1:${port} cannot be reached`,
  );
  let connections = 0;
  const rude = createHttpServer().on('connection', (socket) => {
    connections += 1;
    socket.destroy();
  });
  await expect(
    opened({ origin, tls, proxy: `http://127.0.0.1:${await listen(rude, onTestFinished)}` })('/'),
  ).rejects.toThrow(ProxyError);
  expect(connections).toBe(1);
});

test('the environment selects the proxy; servers in NO_PROXY and loopback addresses are reached directly', async () => {
  const origin = await startServer();
  const { url, seen } = await startProxy('http');
  expect(await opened({ origin, tls }, { env: { https_proxy: url } })('/')).toBe('1.1 /\n');
  expect(seen).toHaveLength(1);
  const local = createHttpServer((_, response) => response.end('here'));
  const near = { origin: `http://127.0.0.1:${await listen(local, onTestFinished)}` };
  expect(await opened(near, { env: { HTTP_PROXY: url } })('/')).toBe('here');
  expect(
    await opened(near, { env: { HTTP_PROXY: 'http://127.0.0.1:1', NO_PROXY: '127.0.0.0/8' } })('/'),
  ).toBe('here');
  expect(seen).toHaveLength(1);
  expect(() => connect({ origin }, { env: { HTTPS_PROXY: 'socks5://127.0.0.1:1080' } })).toThrow(
    'HTTPS_PROXY names a SOCKS proxy, which is not supported',
  );
});
