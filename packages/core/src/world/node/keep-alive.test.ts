import { createServer } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { listen } from '../../testing/servers.ts';
import { connect } from './transport.ts';

test('a connection that the server is about to close gets no further request', async () => {
  // The announced timeout equals the client's safety margin, so no connection may be used twice.
  const server = createServer((request, response) => {
    response.setHeader('keep-alive', 'timeout=1');
    request.resume().on('end', () => response.end('done'));
  });
  server.keepAliveTimeout = 0;
  server.on('connection', (socket) => {
    // Resets a connection that gets a second request. That request fails, because a POST must not be retried.
    let requests = 0;
    socket.on('data', () => {
      requests += 1;
      if (requests > 1) socket.resetAndDestroy();
    });
  });
  const transport = connect({ origin: `http://127.0.0.1:${await listen(server, onTestFinished)}` });
  onTestFinished(() => transport.close());
  const post = async () => {
    const response = await transport.request({ method: 'POST', path: '/', headers: {}, body: '{}' });
    return response.text();
  };
  const outcomes = new Map<string, number>();
  for (let round = 0; round < 50; round++)
    for (const result of await Promise.allSettled(Array.from({ length: 4 }, post))) {
      const outcome = result.status === 'fulfilled' ? result.value : String(result.reason);
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    }
  expect(Object.fromEntries(outcomes)).toEqual({ done: 200 });
});

test('sequential requests share at most two connections', async () => {
  let opened = 0;
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.end('done'));
  });
  server.on('connection', () => {
    opened += 1;
  });
  const transport = connect({ origin: `http://127.0.0.1:${await listen(server, onTestFinished)}` });
  onTestFinished(() => transport.close());
  for (let round = 0; round < 20; round++) {
    const response = await transport.request({ method: 'POST', path: '/', headers: {}, body: '{}' });
    expect(await response.text()).toBe('done');
  }
  // A connection is released one turn of the event loop after its response, so the next request may open a second one.
  expect(opened).toBeLessThanOrEqual(2);
});
