import { getEventListeners } from 'node:events';
import type { TransportRequest, TransportResponse, World } from '@vmwright/core';
import { describe, expect, test } from 'vitest';
import { VirtualClock } from '../../test/virtual-clock.ts';
import { AccessError } from '../access/access.ts';
import { type Credentials, noCredentials, refreshedToken } from '../access/credentials.ts';
import { ConnectionError } from './errors.ts';
import { Requests } from './requests.ts';

class NotAllowedError extends Error {}

type Answer = (request: TransportRequest) => Promise<TransportResponse>;

function answer(status: number, lines: readonly string[] = [], headers: Record<string, string> = {}) {
  return async (): Promise<TransportResponse> => ({
    status,
    header: (name) => headers[name],
    text: async () => lines.join('\n'),
    async *lines() {
      yield* lines;
    },
  });
}

/** A server that gives these answers in turn, the last of them for ever; waits end at once unless `clock` is used. */
function server(...answers: readonly Answer[]) {
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
      const next = answers[Math.min(sent.length, answers.length) - 1];
      if (next === undefined) throw new Error('no answer was given');
      return next(request);
    },
    close: async () => undefined,
  };
  const requests = (credentials: Credentials = noCredentials) =>
    new Requests({ world, transport, credentials, userAgent: 'test' });
  return { clock, world, sent, requests };
}

const GET = { method: 'GET', path: '/x', idempotent: true, timeoutMs: 1_000 } as const;

/** Lets everything happen that waits for nothing but its turn. */
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('what may not be sent', () => {
  test('is not, and the refusal comes as it is', async () => {
    const { requests, sent } = server(answer(200));
    const assertLeader = () => {
      throw new NotAllowedError('another is the leader');
    };
    await expect(requests().text({ ...GET, assertLeader })).rejects.toThrow(NotAllowedError);
    expect(sent).toEqual([]);
  });

  test('is asked anew for each try: a fence that closes in between stops the second', async () => {
    const { requests, sent, clock } = server(answer(503));
    let open = true;
    const assertLeader = () => {
      if (!open) throw new NotAllowedError('another is the leader');
    };
    const asked = expect(requests().text({ ...GET, assertLeader })).rejects.toThrow(NotAllowedError);
    await turn();
    open = false;
    clock.advance(100);
    await asked;
    expect(sent).toHaveLength(1);
  });

  test('is asked after the credentials are there: a slow token does not outlive the fence', async () => {
    const { requests, sent } = server(answer(200));
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

test('asks for JSON unless told what else', async () => {
  const { requests, sent } = server(answer(200));
  await requests().text(GET);
  await requests().text({ ...GET, accept: 'application/json;as=Table' });
  expect(sent.map(({ headers }) => headers.accept)).toEqual([
    'application/json',
    'application/json;as=Table',
  ]);
});

test('a page of a proxy that repeats what it was sent is told without the token', async () => {
  const { requests } = server(answer(404, [`<html>${'-'.repeat(280)}Bearer t0ken-t0ken-t0ken`]));
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

  test('that are refused are renewed, also where an earlier try failed otherwise', async () => {
    const { requests, sent, clock, world } = server(answer(503), answer(401), answer(200, ['done']));
    const asked = requests(tokens(world).credentials).text(GET);
    await turn();
    clock.advance(100);
    expect(await asked).toBe('done');
    expect(sent.map(({ headers }) => headers.authorization)).toEqual(['Bearer t1', 'Bearer t1', 'Bearer t2']);
  });

  test('are renewed once for a request; refused again, that is the answer', async () => {
    const { requests, sent, world } = server(answer(401));
    await expect(requests(tokens(world).credentials).text(GET)).rejects.toMatchObject({
      code: 'UNAUTHORIZED',
    });
    expect(sent).toHaveLength(2);
  });

  test('are fetched once for two requests whose refusals come one after the other', async () => {
    let refuseLate: (response: TransportResponse) => void = () => undefined;
    const late = () => new Promise<TransportResponse>((resolve) => (refuseLate = resolve));
    const { requests, world } = server(late, answer(401), answer(200, ['done']));
    const { credentials, fetched } = tokens(world);
    const sender = requests(credentials);
    const first = sender.text(GET);
    await turn();
    expect(await sender.text(GET)).toBe('done');
    refuseLate(await answer(401)());
    expect(await first).toBe('done');
    expect(fetched()).toBe(2);
  });

  test('that cannot be had end the request as they say, unsent and untried', async () => {
    const { requests, sent } = server(answer(200));
    let asked = 0;
    const failing: Credentials = {
      ...noCredentials,
      authorization: async () => {
        asked += 1;
        throw new AccessError('the plugin has failed');
      },
    };
    await expect(requests(failing).text(GET)).rejects.toThrow(AccessError);
    expect([asked, sent.length]).toEqual([1, 0]);
  });

  test('that never come end with the deadline, or with the caller', async () => {
    const { requests, clock } = server(answer(200));
    const hanging: Credentials = { ...noCredentials, authorization: () => new Promise(() => undefined) };
    const late = requests(hanging).text({ ...GET, idempotent: false });
    clock.advance(1_000);
    await expect(late).rejects.toThrow(ConnectionError);
    await expect(late).rejects.toThrow('GET /x: no answer within 1 s');
    const caller = new AbortController();
    const left = requests(hanging).text({ ...GET, signal: caller.signal });
    caller.abort(new Error('leaving'));
    await expect(left).rejects.toThrow('leaving');
  });
});

test('nothing stays on the signal of a caller who outlives many requests and watches', async () => {
  const { requests, world, clock } = server(answer(503), answer(200, ['a', 'b']));
  const { signal } = new AbortController();
  const sender = requests(refreshedToken(world, async () => ({ value: 't', expiresAt: 0 })));
  const asked = sender.text({ ...GET, signal });
  await turn();
  clock.advance(100);
  await asked;
  const seen: string[] = [];
  for await (const line of await sender.lines({ ...GET, signal })) seen.push(line);
  for await (const line of await sender.lines({ ...GET, signal })) if (line === 'a') break;
  expect(seen).toEqual(['a', 'b']);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

test('what the server warns of is told', async () => {
  const header = '299 - "v1beta1 will go", 299 kube "unknown field \\"a, b\\""';
  const { world, requests: _, ...rest } = server(answer(200, [], { warning: header }));
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
  expect(warnings).toEqual(['v1beta1 will go', 'unknown field "a, b"']);
});

test('a server that asks for time is given it, and a request that it has not carried out is sent again', async () => {
  const { requests, clock, sent } = server(answer(429, [], { 'retry-after': '2' }), answer(200, ['done']));
  const answered = requests().text({ ...GET, method: 'POST', idempotent: false });
  await turn();
  clock.advance(1_999);
  await turn();
  expect(sent).toHaveLength(1);
  clock.advance(1);
  expect(await answered).toBe('done');
  expect(sent).toHaveLength(2);
});
