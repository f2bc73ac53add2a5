import { X509Certificate } from 'node:crypto';
import { createSecureServer, type ServerHttp2Session } from 'node:http2';
import { createServer } from 'node:https';
import type { Server, Socket } from 'node:net';
import { createSecureContext, TLSSocket } from 'node:tls';
import { CertificateAuthority } from '@vmwright/runtime/testing';
import { startToxiproxy } from '@vmwright/testbed';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { listen } from '../../testing/servers.ts';
import type { Transport, TransportResponse } from '../world.ts';
import { Http2Streams } from './http2.ts';
import { connect } from './transport.ts';

const DAY_MS = 86_400_000;

function authority() {
  const validity = { notBefore: new Date(Date.now() - DAY_MS), notAfter: new Date(Date.now() + DAY_MS) };
  const ca = CertificateAuthority.create({ commonName: 'test' }, validity);
  const server = ca.issue({
    subject: { commonName: 'server' },
    usage: ['server'],
    names: ['127.0.0.1'],
    ...validity,
  });
  return { ca, server, validity };
}

async function listening(server: Server): Promise<string> {
  return `https://127.0.0.1:${await listen(server, onTestFinished)}`;
}

function opened(origin: string, ca: string): Transport {
  const transport = connect({ origin, tls: async () => ({ ca }) });
  onTestFinished(() => transport.close());
  return transport;
}

const watch = (transport: Transport, path = '/', signal?: AbortSignal) =>
  transport.request({ method: 'GET', path, headers: {}, lasting: true, signal });

async function firstLine(response: TransportResponse): Promise<string | undefined> {
  for await (const line of response.lines()) return line;
  return undefined;
}

/** Starts an HTTP/2 server that sends one line on each stream and leaves the stream open. */
async function startWatchServer(ids: ReturnType<typeof authority>) {
  const sessions: ServerHttp2Session[] = [];
  const server = createSecureServer({ cert: ids.server.certificate, key: ids.server.key });
  server.on('session', (session) => sessions.push(session));
  server.on('stream', (stream, headers) => {
    stream.on('error', () => undefined);
    stream.respond({ ':status': 200, 'x-path': headers[':path'] });
    stream.write(`${headers[':path']}\n`);
  });
  return { origin: await listening(server), sessions };
}

describe('watches', () => {
  test('watches share one connection', async () => {
    const ids = authority();
    const { origin, sessions } = await startWatchServer(ids);
    const transport = opened(origin, ids.ca.certificate);
    const answers = await Promise.all(Array.from({ length: 40 }, (_, i) => watch(transport, `/${i}`)));
    expect(answers.map((answer) => answer.header('x-path'))).toEqual(answers.map((_, i) => `/${i}`));
    expect(await Promise.all(answers.map(firstLine))).toEqual(answers.map((_, i) => `/${i}`));
    expect(sessions).toHaveLength(1);
  });

  test('watches open a second connection when the first one has reached its stream limit', async () => {
    const ids = authority();
    const { origin, sessions } = await startWatchServer(ids);
    const transport = opened(origin, ids.ca.certificate);
    await watch(transport);
    const answers = await Promise.all(Array.from({ length: 120 }, () => watch(transport)));
    expect(await Promise.all(answers.map(firstLine))).toHaveLength(120);
    expect(sessions).toHaveLength(2);
  });

  test('existing watches continue after GOAWAY, and new watches open another connection', async () => {
    const ids = authority();
    const { origin, sessions } = await startWatchServer(ids);
    const transport = opened(origin, ids.ca.certificate);
    const before = await watch(transport, '/before');
    const lines = before.lines()[Symbol.asyncIterator]();
    expect(await lines.next()).toEqual({ done: false, value: '/before' });
    sessions[0]?.goaway();
    // Until the client has received GOAWAY, new streams still use the old connection.
    await expect
      .poll(async () => (await firstLine(await watch(transport, '/after'))) && sessions.length)
      .toBe(2);
    await lines.return?.();
  });

  test('watches fail when their connection breaks, and the next watch succeeds', async () => {
    const ids = authority();
    const { origin, sessions } = await startWatchServer(ids);
    const transport = opened(origin, ids.ca.certificate);
    const lines = (await watch(transport)).lines()[Symbol.asyncIterator]();
    await lines.next();
    sessions[0]?.destroy();
    await expect(lines.next()).rejects.toThrow();
    expect(await firstLine(await watch(transport, '/again'))).toBe('/again');
  });

  test('watches end without a crash when the client is closed while the connection opens', async () => {
    const ids = authority();
    const { origin } = await startWatchServer(ids);
    for (let turns = 0; turns < 40; turns++) {
      const tls = async () => ({ ca: ids.ca.certificate });
      const streams = new Http2Streams({ server: { origin, tls } });
      const sent = streams.send({ method: 'GET', path: '/', headers: {} }).then(firstLine);
      const ended = sent.then(
        () => 'answered',
        () => 'failed',
      );
      for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
      streams.close();
      expect(await ended).toMatch(/answered|failed/);
    }
  });

  test('watches continue when another watch on their connection is aborted', async () => {
    const ids = authority();
    const { origin, sessions } = await startWatchServer(ids);
    const transport = opened(origin, ids.ca.certificate);
    const stop = new AbortController();
    const one = (await watch(transport, '/one', stop.signal)).lines()[Symbol.asyncIterator]();
    await one.next();
    const other = await watch(transport, '/other');
    stop.abort(new Error('enough'));
    await expect(one.next()).rejects.toThrow('enough');
    expect(await firstLine(other)).toBe('/other');
    expect(sessions).toHaveLength(1);
  });

  test('all watches fail when a ping times out on a half-open connection', async () => {
    await using toxiproxy = await startToxiproxy();
    const ids = authority();
    const { origin } = await startWatchServer(ids);
    const proxy = await toxiproxy.proxy({ name: 'h2', upstream: new URL(origin).host });
    const tls = async () => ({ ca: ids.ca.certificate });
    // With fake timers, a ping times out only when the test advances the time, not when its response is slow.
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const streams = new Http2Streams({
      server: { origin: `https://${proxy.address}`, tls },
      pingEveryMs: 50,
      pingMs: 200,
    });
    onTestFinished(() => streams.close());
    const send = () => streams.send({ method: 'GET', path: '/', headers: {} });
    const lines = [(await send()).lines(), (await send()).lines()].map((each) =>
      each[Symbol.asyncIterator](),
    );
    await Promise.all(lines.map((each) => each.next()));
    const following = lines.map((each) => each.next());
    const failures = following.map((next) => expect(next).rejects.toThrow('does not respond to pings'));
    vi.advanceTimersByTime(50);
    await firstLine(await send()); // this line arrives after the response to the ping, so the ping was answered in time
    vi.advanceTimersByTime(200);
    await firstLine(await send());
    expect(await Promise.race([...following, 'open'])).toBe('open');
    await proxy.halfOpen();
    vi.advanceTimersByTime(50);
    vi.advanceTimersByTime(200);
    await Promise.all(failures);
    vi.useRealTimers();
    await proxy.clear();
    expect(await firstLine(await send())).toBe('/');
  });

  test('watches use one connection each when the server supports only HTTP/1.1', async () => {
    const ids = authority();
    const sockets = new Set<Socket>();
    const server = createServer(
      { cert: ids.server.certificate, key: ids.server.key },
      (request, response) => {
        sockets.add(request.socket);
        response.write(`${request.url}\n`);
      },
    );
    const transport = opened(await listening(server), ids.ca.certificate);
    const answers = [await watch(transport, '/a'), await watch(transport, '/b')];
    expect(await Promise.all(answers.map(firstLine))).toEqual(['/a', '/b']);
    expect(sockets.size).toBe(2);
  });
});

test('rotated client certificates are picked up without failing a request', async () => {
  const ids = authority();
  const client = (name: string) =>
    ids.ca.issue({ subject: { commonName: name }, usage: ['client'], ...ids.validity });
  const server = createServer(
    { cert: ids.server.certificate, key: ids.server.key, ca: ids.ca.certificate, requestCert: true },
    (request, response) => {
      const { socket } = request;
      response.end(socket instanceof TLSSocket ? socket.getPeerCertificate().subject.CN : 'anonymous');
    },
  );
  const origin = await listening(server);
  let current = client('before');
  const tls = async () => ({ ca: ids.ca.certificate, ...current });
  const transport = connect({ origin, tls }, { tlsCheckMs: 0 });
  onTestFinished(() => transport.close());
  const get = async () => (await transport.request({ method: 'GET', path: '/', headers: {} })).text();
  expect(await get()).toBe('before');
  current = client('after');
  await expect.poll(get).toBe('after');
});

test('a certificate with the pinned thumbprint is accepted from any CA, and any other certificate is rejected', async () => {
  const ids = authority();
  const server = createServer({ cert: ids.server.certificate, key: ids.server.key }, (_, response) =>
    response.end('here'),
  );
  const origin = await listening(server);
  const get = async (thumbprint: string) => {
    const transport = connect({ origin, tls: async () => ({ thumbprint }) });
    onTestFinished(() => transport.close());
    return (await transport.request({ method: 'GET', path: '/', headers: {} })).text();
  };
  const pinned = new X509Certificate(ids.server.certificate).fingerprint256.replaceAll(':', '').toLowerCase();
  expect(await get(pinned)).toBe('here');
  await expect(get('0'.repeat(64))).rejects.toMatchObject({
    message: `the server's certificate does not match the pinned thumbprint; its thumbprint is ${pinned}`,
    code: 'CERT_NOT_PINNED', // the code distinguishes this error from an unreachable server
  });
});

describe('server name (SNI)', () => {
  /** Starts a server that selects its certificate by SNI. Without SNI it uses a certificate for another name. */
  async function start() {
    const { ca, validity } = authority();
    const identityOf = (name: string) =>
      ca.issue({ subject: { commonName: name }, usage: ['server'], names: [name], ...validity });
    const known = new Map(
      ['localhost', 'api.example.com'].map((name) => {
        const { certificate, key } = identityOf(name);
        return [name, createSecureContext({ cert: certificate, key })];
      }),
    );
    const other = identityOf('no-name.example.com');
    const requested: string[] = [];
    const server = createSecureServer({
      cert: other.certificate,
      key: other.key,
      allowHTTP1: true,
      SNICallback: (name, answer) => {
        requested.push(name);
        answer(null, known.get(name));
      },
    });
    server.on('request', (_, response) => response.end('here\n'));
    const port = await listen(server, onTestFinished);
    const get = async (host: string, lasting: boolean, serverName?: string) => {
      const tls = async () => ({ ca: ca.certificate, ...(serverName !== undefined && { serverName }) });
      const transport = connect({ origin: `https://${host}:${port}`, tls });
      onTestFinished(() => transport.close());
      return (await transport.request({ method: 'GET', path: '/', headers: {}, lasting })).text();
    };
    return { requested, get };
  }

  test.each([
    ['requests', false],
    ['watches', true],
  ])('the server name is sent with %s', async (_, lasting) => {
    const { requested, get } = await start();
    expect(await get('localhost', lasting)).toBe('here\n');
    expect(requested).toEqual(['localhost']);
  });

  test.each([
    ['requests', false],
    ['watches', true],
  ])('if the kubeconfig sets tls-server-name, %s send it as the server name', async (_, lasting) => {
    const { requested, get } = await start();
    expect(await get('127.0.0.1', lasting, 'api.example.com')).toBe('here\n');
    expect(requested).toEqual(['api.example.com']);
  });

  test('the server name is not sent for an IP address', async () => {
    const { requested, get } = await start();
    await expect(get('127.0.0.1', false)).rejects.toThrow('does not match certificate');
    expect(requested).toEqual([]);
  });
});
