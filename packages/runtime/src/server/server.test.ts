import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { collectingLogger, type LogLevel, Registry } from '@vmwright/core';
import { parseExposition, VirtualClock } from '@vmwright/core/testing';
import { describe, expect, test } from 'vitest';
import { RequestError } from './http-response.ts';
import { Listener, ServerError } from './listener.ts';
import { isLoopback, StatusServer, type StatusServerOptions } from './server.ts';

async function start(options: Partial<StatusServerOptions> = {}) {
  const { logger, lines } = collectingLogger();
  const clock = new VirtualClock();
  const server = await StatusServer.start({ clock, logger, port: 0, host: '127.0.0.1', ...options });
  return { server, clock, lines, [Symbol.asyncDispose]: () => server.close() };
}

interface ReceivedResponse {
  readonly status: number | undefined;
  readonly type: string | undefined;
  readonly text: string;
}

async function send(
  server: StatusServer,
  path: string,
  method = 'GET',
  body = '',
): Promise<ReceivedResponse> {
  const sent = request({ host: '127.0.0.1', port: server.port, path, method, agent: false });
  sent.end(body);
  const [response] = await once(sent, 'response');
  const text = (await response.setEncoding('utf8').toArray()).join('');
  return { status: response.statusCode, type: response.headers['content-type'], text };
}

/** Sends raw bytes and returns everything that the server sends until it closes the connection. */
async function sendRaw(server: StatusServer, bytes: string): Promise<string> {
  const socket = connect(server.port, '127.0.0.1').setEncoding('utf8');
  socket.write(bytes);
  return (await socket.toArray()).join('');
}

describe('health', () => {
  test('the health endpoint returns ok if there are no checks', async () => {
    await using env = await start();
    const { server } = env;
    expect(await send(server, '/healthz')).toEqual({
      status: 200,
      type: 'text/plain; charset=utf-8',
      text: 'ok',
    });
    expect((await send(server, '/readyz/?verbose')).text).toBe('[+]ping ok\nreadyz check passed\n');
    expect(await send(server, '/healthz/ping')).toMatchObject({ status: 200, text: 'ok' });
  });

  test('if a health or readiness check fails, its endpoint responds with 500 and lists all checks by name', async () => {
    await using env = await start();
    const { server, lines } = env;
    let synced = false;
    server.ready.add('webhook', () => undefined);
    server.ready.add('caches', async () => {
      if (!synced) throw new Error('vms are not listed yet');
    });
    const text = '[-]caches failed: reason withheld\n[+]webhook ok\nreadyz check failed\n';
    expect(await send(server, '/readyz')).toMatchObject({ status: 500, text });
    // The reason appears only in the log.
    expect(lines).toMatchObject([
      { msg: 'readyz check failed', check: 'caches', reason: 'vms are not listed yet' },
    ]);
    expect((await send(server, '/healthz')).status).toBe(200);

    synced = true;
    expect(await send(server, '/readyz')).toMatchObject({ status: 200, text: 'ok' });
    expect((await send(server, '/readyz?verbose')).text).toBe(
      '[+]caches ok\n[+]webhook ok\nreadyz check passed\n',
    );
  });

  test('the health endpoint shows the remark of a check in the verbose report', async () => {
    await using env = await start();
    const { server } = env;
    server.ready.add('caches', async () => 'cannot list vms in b');
    expect(await send(server, '/readyz')).toMatchObject({ status: 200, text: 'ok' });
    expect((await send(server, '/readyz?verbose')).text).toBe(
      '[+]caches ok: cannot list vms in b\nreadyz check passed\n',
    );
    expect(await send(server, '/readyz/caches')).toMatchObject({ status: 200, text: 'ok' });
  });

  test('the health endpoint can be requested for one check, or with checks excluded', async () => {
    await using env = await start();
    const { server } = env;
    server.health.add('bad', () => {
      throw new Error('s3cret');
    });
    server.health.add('good', () => undefined);
    expect((await send(server, '/healthz/good')).status).toBe(200);
    expect(await send(server, '/healthz/bad')).toMatchObject({
      status: 500,
      text: 'bad failed: reason withheld\n',
    });
    expect((await send(server, '/healthz/other')).status).toBe(404);
    expect(await send(server, '/healthz?verbose&exclude=bad&exclude=gone')).toMatchObject({
      status: 200,
      text:
        '[+]bad excluded: ok\n[+]good ok\n' +
        'warn: some health checks cannot be excluded: no matches for ["gone"]\nhealthz check passed\n',
    });
  });

  test('the health endpoint fails a check that exceeds its timeout', async () => {
    await using env = await start();
    const { server, clock, lines } = env;
    const started = Promise.withResolvers<void>();
    server.health.add('hangs', () => {
      started.resolve();
      return new Promise(() => undefined);
    });
    const pending = send(server, '/healthz');
    await started.promise;
    clock.advance(5_000);
    expect((await pending).status).toBe(500);
    expect(lines[0]?.reason).toBe('no result within 5 s');
  });
});

describe('metrics', () => {
  test('metrics are served in the Prometheus text format', async () => {
    const metrics = new Registry();
    metrics.counter({ name: 'x_total', help: 'x' });
    await using env = await start({ metrics });
    const { text, type, status } = await send(env.server, '/metrics');
    expect([status, type]).toEqual([200, Registry.contentType]);
    expect(parseExposition(text).has('x_total')).toBe(true);
    expect(await send(env.server, '/metrics', 'HEAD')).toMatchObject({ status: 200, text: '' });
  });

  test('if collecting the metrics throws, /metrics responds with 500 and hides the reason', async () => {
    const metrics = {
      text: () => {
        throw new Error('s3cret');
      },
    };
    await using env = await start({ metrics });
    const { server, lines } = env;
    expect(await send(server, '/metrics')).toMatchObject({
      status: 500,
      text: 'internal error; see the log\n',
    });
    expect(lines[0]).toMatchObject({ level: 'error', path: '/metrics', error: { message: 's3cret' } });
    expect((await send(server, '/healthz')).status).toBe(200);
  });
});

describe('log level', () => {
  test('the log level can be read and set', async () => {
    const { logger, lines } = collectingLogger('info');
    const child = logger.child({ controller: 'vm' });
    await using env = await start({ logLevel: logger });
    const { server } = env;
    expect(await send(server, '/debug/loglevel')).toMatchObject({ status: 200, text: 'info\n' });
    child.debug({}, 'dropped');
    expect(await send(server, '/debug/loglevel', 'PUT', 'debug\n')).toMatchObject({
      status: 200,
      text: 'debug\n',
    });
    child.debug({}, 'logged');
    expect(lines.map(({ msg }) => msg)).toEqual(['logged']);
  });

  test('the log level is unchanged by an invalid value', async () => {
    const { logger } = collectingLogger('warn');
    await using env = await start({ logLevel: logger });
    const put = (body: string) => send(env.server, '/debug/loglevel', 'PUT', body);
    expect(await put('loud')).toMatchObject({
      status: 400,
      text: 'the level must be one of debug, info, warn, error\n',
    });
    expect((await put('')).status).toBe(400);
    expect((await put('debug'.repeat(20))).status).toBe(413);
    expect((await send(env.server, '/debug/loglevel', 'POST', 'debug')).status).toBe(405);
    expect(logger.level).toBe('warn');
  });

  test('the log level is not served by default', async () => {
    await using env = await start();
    expect((await send(env.server, '/debug/loglevel')).status).toBe(404);
    expect((await send(env.server, '/debug/loglevel', 'PUT', 'debug')).status).toBe(404);
  });
});

test('invalid requests get an error response, and the server continues', async () => {
  await using env = await start({ metrics: new Registry() });
  const { server } = env;
  for (const path of [
    '/',
    '/nothing',
    '/healthz/a/b',
    '/metrics/x',
    '/constructor',
    '/toString/x',
    '/healthz/%zz',
  ])
    expect((await send(server, path)).status, path).toBe(404);
  for (const path of ['/metrics', '/healthz', '/readyz/ping'])
    expect((await send(server, path, 'POST', 'x')).status, path).toBe(405);
  expect(await sendRaw(server, 'GET //[ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).toMatch(
    /^HTTP\/1.1 40[04]/,
  );
  expect(await sendRaw(server, 'GET http://[ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).toMatch(
    /^HTTP\/1.1 400/,
  );
  expect(await sendRaw(server, 'not HTTP at all\r\n\r\n')).toMatch(/^HTTP\/1.1 400/);
  expect(
    await sendRaw(server, `GET /${'x'.repeat(100_000)} HTTP/1.1\r\n\r\n`).catch(() => 'HTTP/1.1 431'),
  ).toMatch(/^HTTP\/1.1 4/);
  const disconnecting = connect(server.port, '127.0.0.1');
  disconnecting.write('PUT /debug/loglevel HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc');
  disconnecting.destroy();
  await once(disconnecting, 'close');
  expect((await send(server, '/healthz')).status).toBe(200);
});

describe('closing', () => {
  test('closing waits for a pending response and accepts no new connections', async () => {
    await using env = await start();
    const { server } = env;
    const [started, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    server.health.add('slow', () => {
      started.resolve();
      return released.promise;
    });
    const { port } = server;
    const pending = send(server, '/healthz');
    await started.promise;
    const closed = server.close();
    const refused = connect(port, '127.0.0.1');
    await expect(once(refused, 'connect')).rejects.toThrow('ECONNREFUSED');
    released.resolve();
    expect((await pending).text).toBe('ok');
    await closed;
  });

  test('closing does not wait longer than the grace period', async () => {
    await using env = await start({ graceMs: 1_000 });
    const { server, clock } = env;
    const started = Promise.withResolvers<void>();
    server.health.add('hangs', () => {
      started.resolve();
      return new Promise(() => undefined);
    });
    const failed = expect(send(server, '/healthz')).rejects.toThrow();
    await started.promise;
    const closed = server.close();
    clock.advance(1_000);
    await closed;
    await failed;
  });

  test('closing does not wait longer than the grace period for a TLS handshake', async () => {
    const clock = new VirtualClock();
    const { logger } = collectingLogger();
    const listener = new Listener(createTlsServer(), {
      clock,
      logger,
      serves: 'x',
      port: 0,
      graceMs: 1_000,
      maxConnections: 10,
    });
    await listener.open();
    const silent = connect(listener.port, '127.0.0.1');
    await once(silent, 'connect');
    await expect.poll(() => new Promise((resolve) => silent.write('', () => resolve(true)))).toBe(true);
    const closed = listener.close();
    clock.advance(1_000);
    await closed;
    silent.destroy();
  });

  test('closing is idempotent and does not wait for idle connections', async () => {
    await using env = await start();
    const { server } = env;
    const idle = connect(server.port, '127.0.0.1');
    await once(idle, 'connect');
    idle.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(idle, 'data');
    expect(server.close()).toBe(server.close());
    await server.close();
    expect(() => server.port).toThrow('the server is closed');
  });
});

describe('non-loopback address', () => {
  const everything = () => {
    const metrics = new Registry();
    metrics.counter({ name: 'x_total', help: 'x' });
    return { host: '0.0.0.0', metrics, logLevel: { level: 'info' } as LogLevel };
  };

  test('on a non-loopback address, health needs no authorization; metrics and the log level are forbidden', async () => {
    const options = everything();
    await using env = await start(options);
    expect((await send(env.server, '/healthz')).status).toBe(200);
    expect((await send(env.server, '/readyz?verbose')).status).toBe(200);
    expect(await send(env.server, '/metrics')).toMatchObject({
      status: 403,
      text: '/metrics needs authentication, which this port does not support; use the HTTPS port\n',
    });
    expect((await send(env.server, '/debug/loglevel', 'PUT', 'debug')).status).toBe(403);
    expect((await send(env.server, '/debug/loglevel')).status).toBe(403);
    expect(options.logLevel.level).toBe('info');
  });

  test('on a non-loopback address, openMetrics allows access to the metrics, but not to the log level', async () => {
    await using env = await start({ ...everything(), openMetrics: true });
    expect((await send(env.server, '/metrics')).status).toBe(200);
    expect((await send(env.server, '/debug/loglevel', 'PUT', 'debug')).status).toBe(403);
  });

  test('on a non-loopback address, the authorize callback decides about metrics and log level', async () => {
    const options = everything();
    const authorize = async ({ method }: IncomingMessage, path: string) => {
      if (method === 'PUT')
        throw new RequestError(401, `no token for ${path}\n`, { 'www-authenticate': 'Bearer' });
    };
    await using env = await start({ ...options, authorize });
    expect((await send(env.server, '/metrics')).status).toBe(200);
    expect(await send(env.server, '/debug/loglevel', 'PUT', 'debug')).toMatchObject({
      status: 401,
      text: 'no token for /debug/loglevel\n',
    });
    expect(await sendRaw(env.server, 'PUT /debug/loglevel HTTP/1.1\r\nhost: x\r\n\r\n')).toContain(
      'www-authenticate: Bearer',
    );
    expect((await send(env.server, '/healthz')).status).toBe(200);
    expect(options.logLevel.level).toBe('info');
  });

  test.for([
    ['127.0.0.1', true],
    ['127.1.2.3', true],
    ['::1', true],
    ['localhost', true],
    ['', false],
    ['0.0.0.0', false],
    ['::', false],
    ['10.0.0.1', false],
    ['127.0.0.1.example.com', false],
  ] as const)('isLoopback of %j is %s', ([host, expected]) => {
    expect(isLoopback(host)).toBe(expected);
  });
});

describe('additional routes', () => {
  /** An address of this machine that is not a loopback address; undefined if the machine has no such address. */
  const external = Object.values(networkInterfaces())
    .flat()
    .find((each) => each?.family === 'IPv4' && !each.internal)?.address;

  const withRoutes = (options: Partial<StatusServerOptions> = {}) =>
    start({
      routes: {
        '/health/controller': {
          for: 'anyone',
          respond: () => ({ status: 503, text: '{"status":"unhealthy"}\n', contentType: 'application/json' }),
        },
        '/dead-letters': { for: 'local', respond: async () => ({ status: 200, text: '[]\n' }) },
        '/broken': { for: 'anyone', respond: () => Promise.reject(new Error('s3cret')) },
      },
      ...options,
    });

  test('additional routes respond with status, text and content type', async () => {
    await using env = await withRoutes();
    expect(await send(env.server, '/health/controller')).toEqual({
      status: 503,
      type: 'application/json',
      text: '{"status":"unhealthy"}\n',
    });
    expect(await send(env.server, '/dead-letters?since=1')).toMatchObject({ status: 200, text: '[]\n' });
    expect(await send(env.server, '/dead-letters', 'HEAD')).toMatchObject({ status: 200, text: '' });
  });

  test('additional routes allow GET and HEAD only, and match only their exact path', async () => {
    await using env = await withRoutes();
    for (const method of ['POST', 'PUT', 'DELETE'])
      expect((await send(env.server, '/dead-letters', method)).status, method).toBe(405);
    for (const path of ['/dead-letters/', '/dead-letters/x', '/health', '/DEAD-LETTERS'])
      expect((await send(env.server, path)).status, path).toBe(404);
  });

  test('an error of an additional route is not shown to the client', async () => {
    await using env = await withRoutes();
    expect(await send(env.server, '/broken')).toMatchObject({
      status: 500,
      text: 'internal error; see the log\n',
    });
    expect(env.lines[0]).toMatchObject({ level: 'error', path: '/broken' });
  });

  test('a route for local clients accepts local clients even if the server listens on all addresses', async () => {
    for (const host of ['0.0.0.0', '::']) {
      await using env = await withRoutes({ host });
      expect((await send(env.server, '/dead-letters')).status, host).toBe(200);
    }
  });

  test.skipIf(external === undefined)(
    'a route for local clients rejects clients with a non-loopback address',
    async () => {
      await using env = await withRoutes({ host: '0.0.0.0' });
      const get = async (path: string, headers: Record<string, string> = {}, method = 'GET') => {
        const response = await fetch(`http://${external}:${env.server.port}${path}`, { headers, method });
        return { status: response.status, text: await response.text() };
      };
      const forbidden = {
        status: 403,
        text: '/dead-letters is open to local clients only; use kubectl port-forward\n',
      };
      expect(await get('/dead-letters')).toEqual(forbidden);
      expect(await get('/dead-letters', { 'x-forwarded-for': '127.0.0.1', host: 'localhost' })).toEqual(
        forbidden,
      );
      expect(await get('/dead-letters', {}, 'POST')).toEqual(forbidden);
      expect((await get('/health/controller')).status).toBe(503);
    },
  );

  test.for([
    ['::ffff:127.0.0.1', true],
    ['::ffff:10.0.0.1', false],
    ['::ffff:127.0.0.1.example', false],
  ] as const)('isLoopback of the client %j is %s', ([host, expected]) => {
    expect(isLoopback(host)).toBe(expected);
  });
});

test('starting a server on a port in use fails with an error that contains the address', async () => {
  await using env = await start();
  const second = start({ port: env.server.port });
  await expect(second).rejects.toThrow(ServerError);
  await expect(second).rejects.toThrow(/^cannot serve metrics and health on 127.0.0.1:\d+: .*EADDRINUSE/);
});
