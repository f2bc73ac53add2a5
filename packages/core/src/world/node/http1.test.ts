import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer as createTcpServer, type Server } from 'node:net';
import { Pool } from 'undici';
import PoolByFile from 'undici/lib/dispatcher/pool.js';
import { describe, expect, onTestFinished, test } from 'vitest';
import { listen } from '../../testing/servers.ts';
import type { TransportRequest } from '../world.ts';
import { Http1Pool } from './http1.ts';

async function listening(server: Server): Promise<string> {
  return `http://127.0.0.1:${await listen(server, onTestFinished)}`;
}

async function start(respond: RequestListener, connections?: number) {
  const server = createHttpServer(respond);
  let opened = 0;
  server.on('connection', () => {
    opened += 1;
  });
  const pool = new Http1Pool({
    server: { origin: await listening(server) },
    ...(connections !== undefined && { connections }),
  });
  onTestFinished(() => pool.close());
  return { pool, server, opened: () => opened, get: (path: string, more = {}) => get(pool, path, more) };
}

async function get(pool: Http1Pool, path: string, more: Partial<TransportRequest> = {}): Promise<string> {
  const response = await pool.send({ method: 'GET', path, headers: {}, ...more });
  return response.text();
}

/** Holds back responses until `open` is called. */
function gate() {
  const held: (() => void)[] = [];
  let changed = Promise.withResolvers<void>();
  return {
    hold: (respond: () => void) => {
      held.push(respond);
      changed.resolve();
      changed = Promise.withResolvers();
    },
    open: () => held.splice(0).forEach((respond) => void respond()),
    until: async (count: number) => {
      while (held.length < count) await changed.promise;
    },
  };
}

test('a server that has stopped listening still responds on open connections, and new connections are refused', async () => {
  const held = gate();
  const { pool, server } = await start((request, response) => held.hold(() => response.end(request.url)));
  const first = get(pool, '/first');
  await held.until(1);
  server.close();
  await expect(get(pool, '/second')).rejects.toThrow('ECONNREFUSED');
  held.open();
  expect(await first).toBe('/first');
});

describe('requests', () => {
  test('requests open at most the maximum number of connections, and wait in order for a free connection', async () => {
    const held = gate();
    const order: string[] = [];
    const { get, opened } = await start((request, response) => {
      order.push(request.url ?? '');
      if (request.url?.startsWith('/first')) held.hold(() => response.end(request.url));
      else response.end(request.url);
    }, 2);
    const first = [get('/first-1'), get('/first-2')];
    await held.until(2);
    const later = Array.from({ length: 20 }, (_, i) => get(`/${i}`));
    held.open();
    expect(await Promise.all([...first, ...later])).toEqual([
      '/first-1',
      '/first-2',
      ...later.map((_, i) => `/${i}`),
    ]);
    expect(order.slice(2).map((path) => Number(path.slice(1)))).toEqual(later.map((_, i) => i));
    expect(opened()).toBe(2);
  });

  test('requests are not delayed by an earlier queued request that was aborted', async () => {
    const held = gate();
    const { get } = await start((request, response) => {
      if (request.url === '/held') held.hold(() => response.end('held'));
      else response.end(request.url);
    }, 1);
    const blocking = get('/held');
    await held.until(1);
    const stop = new AbortController();
    const aborted = get('/aborted', { signal: stop.signal });
    const next = get('/next');
    stop.abort(new Error('no longer wanted'));
    await expect(aborted).rejects.toThrow('no longer wanted');
    held.open();
    expect(await Promise.all([blocking, next])).toEqual(['held', '/next']);
  });

  test('a request that is aborted after it was sent closes its connection', async () => {
    const held = gate();
    const { get, opened } = await start((request, response) => {
      if (request.url === '/slow') held.hold(() => undefined);
      else response.end('quick');
    }, 1);
    const stop = new AbortController();
    const slow = get('/slow', { signal: stop.signal });
    await held.until(1);
    stop.abort(new Error('too slow'));
    await expect(slow).rejects.toThrow('too slow');
    expect(await get('/quick')).toBe('quick');
    expect(opened()).toBe(2);
  });

  test('requests succeed after the server has closed an idle connection', async () => {
    const { get, server, opened } = await start((_, response) => response.end('here'));
    expect(await get('/')).toBe('here');
    const gone = new Promise((resolve) => server.once('connection', resolve));
    server.closeAllConnections();
    // The first attempt may fail if the client has not seen the close yet; the second one must succeed.
    const getWithRetry = () => get('/').catch(() => get('/'));
    expect(await getWithRetry()).toBe('here');
    await gone;
    expect(opened()).toBe(2);
  });

  test('a DELETE with a body does not close its connection', async () => {
    const { get, opened } = await start((request, response) => request.pipe(response), 1);
    for (let i = 0; i < 3; i++) expect(await get('/', { method: 'DELETE', body: 'options' })).toBe('options');
    expect(opened()).toBe(1);
  });

  test('requests send and receive large bodies with non-ASCII characters', async () => {
    const { get } = await start((request, response) => request.pipe(response));
    const body = 'žluťoučký kůň 🐎 '.repeat(200_000);
    expect(await get('/', { method: 'POST', body })).toBe(body);
  });

  test('requests are rejected and not sent if the path or a header has an invalid character', async () => {
    const seen: string[] = [];
    const { get } = await start((request, response) => {
      seen.push(request.url ?? '');
      response.end('ok');
    });
    await expect(get('/a\r\nx: y')).rejects.toThrow('the path contains an invalid character');
    await expect(get('/a b')).rejects.toThrow('an invalid character');
    await expect(get('/ž')).rejects.toThrow('an invalid character');
    await expect(get('/', { headers: { authorization: 'a\nb' } })).rejects.toThrow(
      'invalid authorization header',
    );
    expect(await get('/fine')).toBe('ok');
    expect(seen).toEqual(['/fine']);
  });

  test('requests fail when the pool is closed, whether they are running, waiting or new', async () => {
    const held = gate();
    const { get, pool } = await start((_, response) => held.hold(() => response.end()), 1);
    const both = [get('/1'), get('/2')];
    await held.until(1);
    pool.close();
    const outcomes = await Promise.allSettled(both);
    expect(outcomes.map((each) => each.status === 'rejected' && String(each.reason))).toEqual([
      'Error: the client was closed',
      'Error: the client was closed',
    ]);
    await expect(get('/3')).rejects.toThrow('closed');
  });
});

test.each([
  ['is truncated', 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf', 'closed'],
  ['is not HTTP', 'hello\r\n\r\n', 'does not match the HTTP/1.1 protocol'],
  ['is empty', '', 'closed'],
])('a response that %s is an error', async (_, wire, message) => {
  const server = createTcpServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.end(wire));
  });
  const pool = new Http1Pool({ server: { origin: await listening(server) } });
  onTestFinished(() => pool.close());
  await expect(get(pool, '/')).rejects.toThrow(message);
});

test('a request to a closed port fails with ECONNREFUSED', async () => {
  const server = createTcpServer();
  const origin = await listening(server);
  server.close();
  await once(server, 'close');
  await expect(get(new Http1Pool({ server: { origin } }), '/')).rejects.toThrow('ECONNREFUSED');
});

test('a request that is aborted while its connection opens is rejected immediately; other requests keep waiting for the connection', async () => {
  const origin = `https://127.0.0.1:${await listen(createTcpServer(), onTestFinished)}`;
  const gate = Promise.withResolvers<void>();
  const pool = new Http1Pool({
    // While the TLS options are pending, the connection is not established, as during a slow handshake.
    server: { origin, tls: () => gate.promise.then(() => Promise.reject(new Error('no certificate'))) },
    connections: 1,
  });
  onTestFinished(() => pool.close());
  const stop = new AbortController();
  const aborted = get(pool, '/aborted', { signal: stop.signal });
  const waiting = get(pool, '/waiting');
  stop.abort(new Error('no longer wanted'));
  await expect(aborted).rejects.toThrow('no longer wanted');
  gate.resolve();
  await expect(waiting).rejects.toThrow('no certificate');
});

test('beforeSend runs after the wait for a connection and can prevent the request', async () => {
  const held = gate();
  const sent: (string | undefined)[] = [];
  const { pool, get } = await start((request, response) => {
    sent.push(request.url);
    if (request.url === '/held') held.hold(() => response.end('held'));
    else response.end('done');
  }, 1);
  const blocking = get('/held');
  await held.until(1);
  let isAllowed = true;
  const beforeSend = () => {
    if (!isAllowed) throw new Error('another replica is leader');
  };
  const waiting = pool.send({ method: 'DELETE', path: '/late', headers: {}, beforeSend });
  isAllowed = false;
  held.open();
  await blocking;
  await expect(waiting).rejects.toThrow('another replica is leader');
  expect(await get('/next')).toBe('done'); // the connection is free again
  expect(sent).toEqual(['/held', '/next']);
});

test('repeated headers are joined into a list', async () => {
  const { pool } = await start((_, response) => {
    response.setHeader('warning', ['299 - "one"', '299 - "two"']);
    response.setHeader('x-one', 'single');
    response.end();
  });
  const response = await pool.send({ method: 'GET', path: '/', headers: {} });
  expect(response.header('warning')).toBe('299 - "one", 299 - "two"');
  expect(response.header('x-one')).toBe('single');
  expect(response.header('x-none')).toBeUndefined();
});

test('the class Pool that is imported by its file path is the one that undici exports', () => {
  expect(PoolByFile).toBe(Pool);
});
