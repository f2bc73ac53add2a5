import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import { collectingLogger } from '@vmwright/core';
import { VirtualClock } from '@vmwright/core/testing';
import { expect, test } from 'vitest';
import { Listener, requestListener } from './listener.ts';

const MAX_CONNECTIONS = 3;

/** Starts a server that answers `/slow` when `released` resolves, and other paths immediately. */
async function start(timeouts: object = {}) {
  const { logger } = collectingLogger();
  const released = Promise.withResolvers<void>();
  const respond = async (url = '') => {
    if (url === '/slow') await released.promise;
    return { status: 200, text: 'ok' };
  };
  const server = createServer(
    timeouts,
    requestListener(logger, ({ url }) => respond(url)),
  );
  const options = { logger, serves: 'x', port: 0, host: '127.0.0.1', maxConnections: MAX_CONNECTIONS };
  const listener = new Listener(server, { clock: new VirtualClock(), ...options });
  await listener.open();
  const sockets: Socket[] = [];
  const dial = async (text = '') => {
    const socket = connect(listener.port, '127.0.0.1').setEncoding('utf8');
    sockets.push(socket);
    socket.on('error', () => undefined);
    const accepted = once(server, 'connection');
    await once(socket, 'connect');
    await accepted;
    if (text !== '') socket.write(text);
    return socket;
  };
  return {
    server,
    released,
    dial,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await listener.close();
    },
  };
}

const head = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nhost: x\r\n${more}\r\n`;

async function statusLineOver(socket: Socket, path = '/'): Promise<string> {
  socket.write(head(path));
  const [data] = await once(socket, 'data');
  return String(data).split('\r\n')[0] ?? '';
}

test('a connection above the limit replaces the least recently used connection that has no pending request', async () => {
  await using env = await start();
  const used = await env.dial();
  const silent = await env.dial();
  const other = await env.dial();
  expect(await statusLineOver(used)).toBe('HTTP/1.1 200 OK');
  const closed = once(silent.resume(), 'close');
  const late = await env.dial();
  await closed;
  for (const socket of [late, used, other]) expect(await statusLineOver(socket)).toBe('HTTP/1.1 200 OK');
});

test('at the maximum number of connections, a new connection replaces one with an incomplete request, but not one with a pending response', async () => {
  await using env = await start();
  const requested = once(env.server, 'request');
  const waiting = await env.dial(head('/slow'));
  await requested;
  const incomplete = once(env.server, 'request');
  const half = await env.dial(
    'POST /slow HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\nthe beginning',
  );
  await incomplete;
  await env.dial();
  const closed = once(half.resume(), 'close');
  const late = await env.dial();
  await closed;
  expect(await statusLineOver(late)).toBe('HTTP/1.1 200 OK');
  const answered = once(waiting, 'data');
  env.released.resolve();
  expect(String((await answered)[0])).toContain('200 OK');
});

test('at the maximum number of connections, a new connection is closed if all other connections have a pending response', async () => {
  await using env = await start();
  for (let count = 0; count < MAX_CONNECTIONS; count += 1) {
    const requested = once(env.server, 'request');
    await env.dial(head('/slow'));
    await requested;
  }
  const extra = await env.dial();
  await once(extra.resume(), 'close');
});

test('a request with headers that are still incomplete at the timeout is answered with 408', async () => {
  await using env = await start({ headersTimeout: 1, requestTimeout: 1, connectionsCheckingInterval: 1 });
  const slow = await env.dial('GET / HTTP/1.1\r\nhost: x\r\n');
  expect((await slow.toArray()).join('')).toContain('408 Request Timeout');
});
