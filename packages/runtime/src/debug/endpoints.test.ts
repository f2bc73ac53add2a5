import { once } from 'node:events';
import { request } from 'node:http';
import { silentLogger } from '@vmwright/core';
import { VirtualClock } from '@vmwright/core/testing';
import { describe, expect, test } from 'vitest';
import { WorkQueue } from '../queue/work-queue.ts';
import { RequestError } from '../server/http-response.ts';
import { StatusServer, type StatusServerOptions } from '../server/server.ts';
import { DebugEndpoints } from './endpoints.ts';

const PATHS = ['/debug/queues', '/debug/operations', '/debug/profile?seconds=1', '/debug/heap'];

async function start(options: Partial<StatusServerOptions> = {}) {
  const clock = new VirtualClock();
  const queue = new WorkQueue({ clock });
  const state = { isLeading: true };
  const debug = new DebugEndpoints({
    clock,
    isLeading: () => state.isLeading,
    queues: () => ({ vm: queue.keys }),
    operations: () => ({ vmgroup: [{ object: 'shop/web', task: 'task-1' }] }),
  });
  const logger = silentLogger;
  const server = await StatusServer.start({ clock, logger, port: 0, host: '127.0.0.1', debug, ...options });
  const send = async (path: string, method = 'GET') => {
    const sent = request({ host: '127.0.0.1', port: server.port, path, method, agent: false }).end();
    const [response] = await once(sent, 'response');
    const { 'content-disposition': name } = response.headers;
    return {
      status: response.statusCode,
      name,
      text: (await response.setEncoding('utf8').toArray()).join(''),
    };
  };
  return { clock, queue, state, send, port: server.port, [Symbol.asyncDispose]: () => server.close() };
}

/** Request that never starts a recording: it is rejected with 409 during another recording, and otherwise with 400. */
const UNRECORDED = '/debug/profile?seconds=0';

/** Allows every request. */
const authorize = async () => undefined;

describe('debug endpoints', () => {
  test('debug endpoints show the keys of each queue and the operations in flight as JSON', async () => {
    await using env = await start();
    const { clock, queue, send } = env;
    queue.add('shop/a');
    queue.add('shop/b', { priority: -100 });
    queue.add('shop/c', { afterMs: 5_000 });
    queue.tryTake();
    queue.add('shop/a');
    clock.advance(1_000);
    expect(JSON.parse((await send('/debug/queues')).text)).toEqual({
      vm: [
        { key: 'shop/a', state: 'processing', priority: 0, failures: 0, forMs: 1_000, isAddedAgain: true },
        { key: 'shop/b', state: 'ready', priority: -100, failures: 0, forMs: 1_000 },
        { key: 'shop/c', state: 'waiting', priority: 0, failures: 0, readyInMs: 4_000 },
      ],
    });
    const operations = { vmgroup: [{ object: 'shop/web', task: 'task-1' }] };
    expect(JSON.parse((await send('/debug/operations')).text)).toEqual(operations);
  });

  test('debug endpoints call `authorize` for every path; without `authorize`, they reject all requests on a non-loopback address', async () => {
    const asked: string[] = [];
    const authorize = async (_: unknown, path: string) => {
      asked.push(path);
      throw new RequestError(401, 'a bearer token is required\n');
    };
    await using rejecting = await start({ authorize });
    for (const path of PATHS) expect(await rejecting.send(path)).toMatchObject({ status: 401 });
    expect(asked).toEqual(PATHS.map((path) => path.split('?')[0]));
    await using open = await start({ host: '0.0.0.0', openMetrics: true });
    for (const path of PATHS)
      expect(await open.send(path)).toMatchObject({
        status: 403,
        text: expect.stringContaining('use the HTTPS port'),
      });
  });

  test('debug endpoints on loopback need no token, except /debug/heap', async () => {
    await using env = await start();
    expect(await env.send('/debug/queues')).toMatchObject({ status: 200 });
    expect(await env.send('/debug/heap')).toMatchObject({ status: 403 });
  });

  test('debug endpoints accept only GET', async () => {
    await using env = await start({ authorize });
    for (const path of PATHS) expect(await env.send(path, 'POST')).toMatchObject({ status: 405 });
  });

  test('a CPU profile samples for the requested seconds, and a second profile at the same time is rejected', async () => {
    await using env = await start();
    const { clock, send } = env;
    const profiling = send('/debug/profile?seconds=30');
    await expect.poll(() => clock.timers).toBe(1);
    expect(await send('/debug/profile')).toMatchObject({ status: 409 });
    clock.advance(30_000);
    const { status, name, text } = await profiling;
    expect([status, name]).toEqual([200, 'attachment; filename="vmwright.cpuprofile"']);
    expect(JSON.parse(text)).toMatchObject({ nodes: expect.any(Array), samples: expect.any(Array) });
    expect(clock.timers).toBe(0);
  });

  test.each(['0', '61', 'many', '-1'])('a CPU profile of %s seconds is rejected', async (seconds) => {
    await using env = await start();
    expect(await env.send(`/debug/profile?seconds=${seconds}`)).toMatchObject({
      status: 400,
      text: `seconds is "${seconds}"; it must be a number from 1 to 60\n`,
    });
  });

  test('a client that disconnects ends its CPU profile', async () => {
    await using env = await start();
    const { clock, port } = env;
    const sent = request({ host: '127.0.0.1', port, path: '/debug/profile', agent: false }).end();
    sent.on('error', () => undefined);
    await expect.poll(() => clock.timers).toBe(1);
    sent.destroy();
    await expect.poll(() => clock.timers).toBe(0);
  });

  test('a heap snapshot is refused while the replica leads, and streamed by a standby', async () => {
    await using env = await start({ authorize });
    const { state, send } = env;
    expect(await send('/debug/heap')).toMatchObject({
      status: 409,
      text: expect.stringContaining('ask a standby replica'),
    });
    state.isLeading = false;
    const { status, name, text } = await send('/debug/heap');
    expect([status, name]).toEqual([200, 'attachment; filename="vmwright.heapsnapshot"']);
    expect(text.slice(0, 40)).toContain('{"snapshot":');
    expect(text.trimEnd().at(-1)).toBe('}');
    await expect.poll(() => send(UNRECORDED)).toMatchObject({ status: 400 });
  });

  test('while a heap snapshot is sent, other heap snapshots and CPU profiles are rejected, until the client of the snapshot disconnects', async () => {
    await using env = await start({ authorize });
    const { state, send, port } = env;
    state.isLeading = false;
    const sent = request({ host: '127.0.0.1', port, path: '/debug/heap', agent: false }).end();
    await once(sent, 'response'); // the body is not read, so that the server cannot send all of it
    for (const path of ['/debug/heap', '/debug/profile'])
      expect(await send(path)).toMatchObject({
        status: 409,
        text: expect.stringContaining('is being recorded'),
      });
    sent.destroy();
    await expect.poll(() => send(UNRECORDED)).toMatchObject({ status: 400 });
  });
});
