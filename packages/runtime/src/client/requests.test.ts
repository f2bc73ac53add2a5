import { getEventListeners } from 'node:events';
import type { TransportRequest, TransportResponse, World } from '@vmwright/core';
import { VirtualClock } from '@vmwright/core/testing';
import { describe, expect, test } from 'vitest';
import { AccessError } from '../access/access.ts';
import { type Credentials, noCredentials, refreshedToken } from '../access/credentials.ts';
import { ConnectionError } from './errors.ts';
import { Requests } from './requests.ts';

class NotAllowedError extends Error {}

type Responder = (request: TransportRequest) => Promise<TransportResponse>;

function respond(status: number, lines: readonly string[] = [], headers: Record<string, string> = {}) {
  return async (): Promise<TransportResponse> => ({
    status,
    header: (name) => headers[name],
    text: async () => lines.join('\n'),
    async *lines() {
      yield* lines;
    },
  });
}

/** A server that sends these responses in turn and repeats the last one. Delays pass when the test advances `clock`. */
function server(...responders: readonly Responder[]) {
  const clock = new VirtualClock();
  const sent: TransportRequest[] = [];
  const world: World = {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after: (ms, callback) => clock.after(ms, callback),
    random: () => 0.5,
    uuid: () => 'uuid',
    connect: () => transport,
  };
  const transport = {
    request: async (request: TransportRequest) => {
      sent.push(request);
      const next = responders[Math.min(sent.length, responders.length) - 1];
      if (next === undefined) throw new Error('no response was configured');
      return next(request);
    },
    close: async () => undefined,
  };
  const requests = (credentials: Credentials = noCredentials) =>
    new Requests({ world, transport, credentials, userAgent: 'test' });
  return { clock, world, sent, requests };
}

const GET = { method: 'GET', path: '/x', idempotent: true, timeoutMs: 1_000 } as const;

/** Runs all pending promise callbacks. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('assertLeader', () => {
  test('an error of assertLeader keeps the request from being sent and is thrown unchanged', async () => {
    const { requests, sent } = server(respond(200));
    const assertLeader = () => {
      throw new NotAllowedError('another is the leader');
    };
    await expect(requests().text({ ...GET, assertLeader })).rejects.toThrow(NotAllowedError);
    expect(sent).toEqual([]);
  });

  test('assertLeader is called for each attempt: a replica that loses its leadership between two attempts does not retry', async () => {
    const { requests, sent, clock } = server(respond(503));
    let open = true;
    const assertLeader = () => {
      if (!open) throw new NotAllowedError('another is the leader');
    };
    const rejected = expect(requests().text({ ...GET, assertLeader })).rejects.toThrow(NotAllowedError);
    await settle();
    open = false;
    clock.advance(100);
    await rejected;
    expect(sent).toHaveLength(1);
  });

  test('assertLeader is called after the credentials are available, because leadership can be lost while a token is fetched', async () => {
    const { requests, sent } = server(respond(200));
    let open = true;
    const slow: Credentials = {
      ...noCredentials,
      authorization: async () => {
        open = false;
        return undefined;
      },
    };
    const assertLeader = () => {
      if (!open) throw new NotAllowedError('another is the leader');
    };
    await expect(requests(slow).text({ ...GET, assertLeader })).rejects.toThrow(NotAllowedError);
    expect(sent).toEqual([]);
  });
});

test('the Accept header of a request is application/json by default', async () => {
  const { requests, sent } = server(respond(200));
  await requests().text(GET);
  await requests().text({ ...GET, accept: 'application/json;as=Table' });
  expect(sent.map(({ headers }) => headers.accept)).toEqual([
    'application/json',
    'application/json;as=Table',
  ]);
});

test('an error that quotes the error page of a proxy omits a token in that page', async () => {
  const { requests } = server(respond(404, [`<html>${'-'.repeat(280)}Bearer t0ken-t0ken-t0ken`]));
  const token: Credentials = { ...noCredentials, authorization: async () => 'Bearer t0ken-t0ken-t0ken' };
  const error = await requests(token).text(GET).catch(String);
  expect(error).toContain('<html>');
  expect(error).not.toContain('t0k');
});

describe('credentials', () => {
  const tokens = (world: World) => {
    let fetched = 0;
    const credentials = refreshedToken(world, async () => ({ value: `t${++fetched}`, expiresAt: Infinity }));
    return { credentials, fetched: () => fetched };
  };

  test('credentials are renewed after a 401, even if an earlier attempt failed for another reason', async () => {
    const { requests, sent, clock, world } = server(respond(503), respond(401), respond(200, ['done']));
    const text = requests(tokens(world).credentials).text(GET);
    await settle();
    clock.advance(100);
    expect(await text).toBe('done');
    expect(sent.map(({ headers }) => headers.authorization)).toEqual(['Bearer t1', 'Bearer t1', 'Bearer t2']);
  });

  test('credentials are renewed once per request; a second 401 is thrown', async () => {
    const { requests, sent, world } = server(respond(401));
    await expect(requests(tokens(world).credentials).text(GET)).rejects.toMatchObject({
      code: 'UNAUTHORIZED',
    });
    expect(sent).toHaveLength(2);
  });

  test('credentials are renewed only once if two requests with the same token get a 401 one after the other', async () => {
    let respondLate: (response: TransportResponse) => void = () => undefined;
    const late = () => new Promise<TransportResponse>((resolve) => (respondLate = resolve));
    const { requests, world } = server(late, respond(401), respond(200, ['done']));
    const { credentials, fetched } = tokens(world);
    const sender = requests(credentials);
    const first = sender.text(GET);
    await settle();
    expect(await sender.text(GET)).toBe('done');
    respondLate(await respond(401)());
    expect(await first).toBe('done');
    expect(fetched()).toBe(2);
  });

  test('if the credentials cannot be fetched, the request fails with that error and is not sent', async () => {
    const { requests, sent } = server(respond(200));
    let fetches = 0;
    const failing: Credentials = {
      ...noCredentials,
      authorization: async () => {
        fetches += 1;
        throw new AccessError('the plugin has failed');
      },
    };
    await expect(requests(failing).text(GET)).rejects.toThrow(AccessError);
    expect([fetches, sent.length]).toEqual([1, 0]);
  });

  test('if the credentials never arrive, the request fails after its timeout or when the caller aborts it', async () => {
    const { requests, clock } = server(respond(200));
    const hanging: Credentials = { ...noCredentials, authorization: () => new Promise(() => undefined) };
    const late = requests(hanging).text({ ...GET, idempotent: false });
    clock.advance(1_000);
    await expect(late).rejects.toThrow(ConnectionError);
    await expect(late).rejects.toThrow('GET /x: no response within 1 s');
    const caller = new AbortController();
    const left = requests(hanging).text({ ...GET, signal: caller.signal });
    caller.abort(new Error('leaving'));
    await expect(left).rejects.toThrow('leaving');
  });
});

test('requests and watches leave no listener on the signal of the caller', async () => {
  const { requests, world, clock } = server(respond(503), respond(200, ['a', 'b']));
  const { signal } = new AbortController();
  const sender = requests(refreshedToken(world, async () => ({ value: 't', expiresAt: 0 })));
  const text = sender.text({ ...GET, signal });
  await settle();
  clock.advance(100);
  await text;
  const seen: string[] = [];
  for await (const line of await sender.lines({ ...GET, signal })) seen.push(line);
  for await (const line of await sender.lines({ ...GET, signal })) if (line === 'a') break;
  expect(seen).toEqual(['a', 'b']);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

test('warnings of the server are reported to the observer', async () => {
  const header = '299 - "v1beta1 is deprecated", 299 kube "unknown field \\"a, b\\""';
  const { world, requests: _, ...rest } = server(respond(200, [], { warning: header }));
  const warnings: string[] = [];
  const requests = new Requests({
    world,
    transport: world.connect({ origin: 'https://unused' }),
    credentials: noCredentials,
    userAgent: 'test',
    observer: { answered: () => undefined, warned: (text) => warnings.push(text) },
  });
  await requests.text(GET);
  expect(rest.sent).toHaveLength(1);
  expect(warnings).toEqual(['v1beta1 is deprecated', 'unknown field "a, b"']);
});

test('a 429 is retried after its Retry-After, even for a request that is not idempotent', async () => {
  const { requests, clock, sent } = server(respond(429, [], { 'retry-after': '2' }), respond(200, ['done']));
  const text = requests().text({ ...GET, method: 'POST', idempotent: false });
  await settle();
  clock.advance(1_999);
  await settle();
  expect(sent).toHaveLength(1);
  clock.advance(1);
  expect(await text).toBe('done');
  expect(sent).toHaveLength(2);
});
