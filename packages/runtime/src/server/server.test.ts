import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect } from 'node:net';
import { collectingLogger, type LogLevel, Registry } from '@vmwright/core';
import { parseExposition } from '@vmwright/core/testing';
import { describe, expect, test } from 'vitest';
import { VirtualClock } from '../../test/virtual-clock.ts';
import { RequestError } from './answer.ts';
import { Listener, ServerError } from './listener.ts';
import { isLoopback, StatusServer, type StatusServerOptions } from './server.ts';

async function start(options: Partial<StatusServerOptions> = {}) {
  const { logger, lines } = collectingLogger();
  const clock = new VirtualClock();
  const server = await StatusServer.start({ clock, logger, port: 0, host: '127.0.0.1', ...options });
  return { server, clock, lines, [Symbol.asyncDispose]: () => server.close() };
}

interface Asked {
  readonly status: number | undefined;
  readonly type: string | undefined;
  readonly text: string;
}

async function ask(server: StatusServer, path: string, method = 'GET', body = ''): Promise<Asked> {
  const sent = request({ host: '127.0.0.1', port: server.port, path, method, agent: false });
  sent.end(body);
  const [response] = await once(sent, 'response');
  const text = (await response.setEncoding('utf8').toArray()).join('');
  return { status: response.statusCode, type: response.headers['content-type'], text };
}

/** Sends bytes as they are, and gives all that comes back until the server closes. */
async function sendRaw(server: StatusServer, bytes: string): Promise<string> {
  const socket = connect(server.port, '127.0.0.1').setEncoding('utf8');
  socket.write(bytes);
  return (await socket.toArray()).join('');
}

describe('health', () => {
  test('without checks is that there is an answer', async () => {
    await using all = await start();
    const { server } = all;
    expect(await ask(server, '/healthz')).toEqual({
      status: 200,
      type: 'text/plain; charset=utf-8',
      text: 'ok',
    });
    expect((await ask(server, '/readyz/?verbose')).text).toBe('[+]ping ok\nreadyz check passed\n');
    expect(await ask(server, '/healthz/ping')).toMatchObject({ status: 200, text: 'ok' });
  });

  test('is all checks by name, in order, and 500 with the list as soon as one fails', async () => {
    await using all = await start();
    const { server, lines } = all;
    let synced = false;
    server.ready.add('webhook', () => undefined);
    server.ready.add('caches', async () => {
      if (!synced) throw new Error('vms are not listed yet');
    });
    const text = '[-]caches failed: reason withheld\n[+]webhook ok\nreadyz check failed\n';
    expect(await ask(server, '/readyz')).toMatchObject({ status: 500, text });
    // The reason is for those who may read the log.
    expect(lines).toMatchObject([
      { msg: 'readyz check failed', check: 'caches', reason: 'vms are not listed yet' },
    ]);
    expect((await ask(server, '/healthz')).status).toBe(200);

    synced = true;
    expect(await ask(server, '/readyz')).toMatchObject({ status: 200, text: 'ok' });
    expect((await ask(server, '/readyz?verbose')).text).toBe(
      '[+]caches ok\n[+]webhook ok\nreadyz check passed\n',
    );
  });

  test('that has a remark is ok, and tells it to who asks verbosely', async () => {
    await using all = await start();
    const { server } = all;
    server.ready.add('caches', async () => 'without vms in b');
    expect(await ask(server, '/readyz')).toMatchObject({ status: 200, text: 'ok' });
    expect((await ask(server, '/readyz?verbose')).text).toBe(
      '[+]caches ok: without vms in b\nreadyz check passed\n',
    );
    expect(await ask(server, '/readyz/caches')).toMatchObject({ status: 200, text: 'ok' });
  });

  test('can be asked for one check, or without some', async () => {
    await using all = await start();
    const { server } = all;
    server.health.add('bad', () => {
      throw new Error('s3cret');
    });
    server.health.add('good', () => undefined);
    expect((await ask(server, '/healthz/good')).status).toBe(200);
    expect(await ask(server, '/healthz/bad')).toMatchObject({
      status: 500,
      text: 'bad failed: reason withheld\n',
    });
    expect((await ask(server, '/healthz/other')).status).toBe(404);
    expect(await ask(server, '/healthz?verbose&exclude=bad&exclude=gone')).toMatchObject({
      status: 200,
      text:
        '[+]bad excluded: ok\n[+]good ok\n' +
        'warn: some health checks cannot be excluded: no matches for ["gone"]\nhealthz check passed\n',
    });
  });

  test('does not wait for a check that hangs', async () => {
    await using all = await start();
    const { server, clock, lines } = all;
    const begun = Promise.withResolvers<void>();
    server.health.add('hangs', () => {
      begun.resolve();
      return new Promise(() => undefined);
    });
    const asked = ask(server, '/healthz');
    await begun.promise;
    clock.advance(5_000);
    expect((await asked).status).toBe(500);
    expect(lines[0]?.reason).toBe('no result within 5 s');
  });
});

describe('metrics', () => {
  test('are served as Prometheus reads them', async () => {
    const metrics = new Registry();
    metrics.counter({ name: 'x_total', help: 'x' });
    await using all = await start({ metrics });
    const { text, type, status } = await ask(all.server, '/metrics');
    expect([status, type]).toEqual([200, Registry.contentType]);
    expect(parseExposition(text).has('x_total')).toBe(true);
    expect(await ask(all.server, '/metrics', 'HEAD')).toMatchObject({ status: 200, text: '' });
  });

  test('that cannot be had answer 500 without the reason, and the next request is served', async () => {
    const metrics = {
      text: () => {
        throw new Error('s3cret');
      },
    };
    await using all = await start({ metrics });
    const { server, lines } = all;
    expect(await ask(server, '/metrics')).toMatchObject({
      status: 500,
      text: 'internal error; see the log\n',
    });
    expect(lines[0]).toMatchObject({ level: 'error', path: '/metrics', error: { message: 's3cret' } });
    expect((await ask(server, '/healthz')).status).toBe(200);
  });
});

describe('the log level', () => {
  test('is shown and set', async () => {
    const { logger, lines } = collectingLogger('info');
    const child = logger.child({ controller: 'vm' });
    await using all = await start({ logLevel: logger });
    const { server } = all;
    expect(await ask(server, '/debug/loglevel')).toMatchObject({ status: 200, text: 'info\n' });
    child.debug({}, 'unheard');
    expect(await ask(server, '/debug/loglevel', 'PUT', 'debug\n')).toMatchObject({
      status: 200,
      text: 'debug\n',
    });
    child.debug({}, 'heard');
    expect(lines.map(({ msg }) => msg)).toEqual(['heard']);
  });

  test('stays as it is when the new one makes no sense', async () => {
    const { logger } = collectingLogger('warn');
    await using all = await start({ logLevel: logger });
    const put = (body: string) => ask(all.server, '/debug/loglevel', 'PUT', body);
    expect(await put('loud')).toMatchObject({
      status: 400,
      text: 'the level must be one of debug, info, warn, error\n',
    });
    expect((await put('')).status).toBe(400);
    expect((await put('debug'.repeat(20))).status).toBe(413);
    expect((await ask(all.server, '/debug/loglevel', 'POST', 'debug')).status).toBe(405);
    expect(logger.level).toBe('warn');
  });

  test('is not there unless wanted', async () => {
    await using all = await start();
    expect((await ask(all.server, '/debug/loglevel')).status).toBe(404);
    expect((await ask(all.server, '/debug/loglevel', 'PUT', 'debug')).status).toBe(404);
  });
});

test('requests that make no sense are answered or dropped, and the server serves on', async () => {
  await using all = await start({ metrics: new Registry() });
  const { server } = all;
  for (const path of [
    '/',
    '/nothing',
    '/healthz/a/b',
    '/metrics/x',
    '/constructor',
    '/toString/x',
    '/healthz/%zz',
  ])
    expect((await ask(server, path)).status, path).toBe(404);
  for (const path of ['/metrics', '/healthz', '/readyz/ping'])
    expect((await ask(server, path, 'POST', 'x')).status, path).toBe(405);
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
  const leaver = connect(server.port, '127.0.0.1');
  leaver.write('PUT /debug/loglevel HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc');
  leaver.destroy();
  await once(leaver, 'close');
  expect((await ask(server, '/healthz')).status).toBe(200);
});

describe('closing', () => {
  test('lets an answer under way end, and takes no more', async () => {
    await using all = await start();
    const { server } = all;
    const [begun, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    server.health.add('slow', () => {
      begun.resolve();
      return go.promise;
    });
    const { port } = server;
    const asked = ask(server, '/healthz');
    await begun.promise;
    const closed = server.close();
    const refused = connect(port, '127.0.0.1');
    await expect(once(refused, 'connect')).rejects.toThrow('ECONNREFUSED');
    go.resolve();
    expect((await asked).text).toBe('ok');
    await closed;
  });

  test('does not wait longer than its time', async () => {
    await using all = await start({ graceMs: 1_000 });
    const { server, clock } = all;
    const begun = Promise.withResolvers<void>();
    server.health.add('hangs', () => {
      begun.resolve();
      return new Promise(() => undefined);
    });
    const asked = expect(ask(server, '/healthz')).rejects.toThrow();
    await begun.promise;
    const closed = server.close();
    clock.advance(1_000);
    await closed;
    await asked;
  });

  test('does not wait for one that never came to speaking TLS', async () => {
    const clock = new VirtualClock();
    const { logger } = collectingLogger();
    const listener = new Listener(createTlsServer(), {
      ...{ clock, logger, serves: 'x', port: 0, graceMs: 1_000, maxConnections: 10 },
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

  test('twice is closing once; an idle connection does not hold it up', async () => {
    await using all = await start();
    const { server } = all;
    const idle = connect(server.port, '127.0.0.1');
    await once(idle, 'connect');
    idle.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(idle, 'data');
    expect(server.close()).toBe(server.close());
    await server.close();
    expect(() => server.port).toThrow('the server is closed');
  });
});

describe('on an address that others reach', () => {
  const everything = () => {
    const metrics = new Registry();
    metrics.counter({ name: 'x_total', help: 'x' });
    return { host: '0.0.0.0', metrics, logLevel: { level: 'info' } as LogLevel };
  };

  test('health is open; metrics and the log level are not', async () => {
    const options = everything();
    await using all = await start(options);
    expect((await ask(all.server, '/healthz')).status).toBe(200);
    expect((await ask(all.server, '/readyz?verbose')).status).toBe(200);
    expect(await ask(all.server, '/metrics')).toMatchObject({
      status: 403,
      text: '/metrics is not open on this port\n',
    });
    expect((await ask(all.server, '/debug/loglevel', 'PUT', 'debug')).status).toBe(403);
    expect((await ask(all.server, '/debug/loglevel')).status).toBe(403);
    expect(options.logLevel.level).toBe('info');
  });

  test('metrics can be opened, and the log level stays closed', async () => {
    await using all = await start({ ...everything(), openMetrics: true });
    expect((await ask(all.server, '/metrics')).status).toBe(200);
    expect((await ask(all.server, '/debug/loglevel', 'PUT', 'debug')).status).toBe(403);
  });

  test('who is authorized reads the metrics and sets the level', async () => {
    const options = everything();
    const authorize = async ({ method }: IncomingMessage, path: string) => {
      if (method === 'PUT')
        throw new RequestError(401, `no token for ${path}\n`, { 'www-authenticate': 'Bearer' });
    };
    await using all = await start({ ...options, authorize });
    expect((await ask(all.server, '/metrics')).status).toBe(200);
    expect(await ask(all.server, '/debug/loglevel', 'PUT', 'debug')).toMatchObject({
      status: 401,
      text: 'no token for /debug/loglevel\n',
    });
    expect(await sendRaw(all.server, 'PUT /debug/loglevel HTTP/1.1\r\nhost: x\r\n\r\n')).toContain(
      'www-authenticate: Bearer',
    );
    expect((await ask(all.server, '/healthz')).status).toBe(200);
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
  ] as const)('%j is a loopback address: %s', ([host, is]) => {
    expect(isLoopback(host)).toBe(is);
  });
});

test('a port that is taken is said in a sentence', async () => {
  await using all = await start();
  const again = start({ port: all.server.port });
  await expect(again).rejects.toThrow(ServerError);
  await expect(again).rejects.toThrow(/^cannot serve metrics and health on 127.0.0.1:\d+: .*EADDRINUSE/);
});
