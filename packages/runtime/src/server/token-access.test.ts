import type { IncomingMessage } from 'node:http';
import { collectingLogger } from '@vmwright/core';
import { describe, expect, test } from 'vitest';
import { VirtualClock } from '../../test/virtual-clock.ts';
import type { Kind } from '../kind/kind.ts';
import { RequestError } from './answer.ts';
import { TokenAccess } from './token-access.ts';

/** An API server that knows the token `good` of jane and `poor` of joe, and lets jane get /metrics. */
function start() {
  const clock = new VirtualClock();
  const { logger, lines } = collectingLogger();
  const asked: { readonly kind: string; readonly spec: object }[] = [];
  const users: Record<string, string> = { good: 'jane', poor: 'joe' };
  const server = { isDown: false, janeMay: true };
  const hold: { until: Promise<void> | undefined } = { until: undefined };
  const client = {
    review: async ({ kind }: Kind, spec: object): Promise<Readonly<Record<string, unknown>>> => {
      asked.push({ kind, spec });
      await hold.until;
      if (server.isDown) throw new Error('connection refused');
      if ('token' in spec) {
        const username = users[String(spec.token)];
        return username === undefined
          ? { authenticated: false, error: 'invalid bearer token' }
          : { authenticated: true, user: { username, uid: 'u', groups: ['g'], extra: { a: ['b'] } } };
      }
      return { allowed: server.janeMay && 'user' in spec && spec.user === 'jane' };
    },
  };
  const access = new TokenAccess({ clock, client, logger });
  const ask = async (authorization: string | undefined, method = 'GET', path = '/metrics') => {
    try {
      const request = { headers: { authorization }, method } as unknown as IncomingMessage;
      await access.assert(request, path);
      return 200;
    } catch (error) {
      if (error instanceof RequestError) return error.status;
      throw error;
    }
  };
  return { clock, lines, asked, server, hold, ask };
}

test('a user whom RBAC allows is let in, by the user and the path that are checked', async () => {
  const { ask, asked } = start();
  expect(await ask('Bearer good')).toBe(200);
  expect(asked).toEqual([
    { kind: 'TokenReview', spec: { token: 'good' } },
    {
      kind: 'SubjectAccessReview',
      spec: {
        ...{ user: 'jane', uid: 'u', groups: ['g'], extra: { a: ['b'] } },
        nonResourceAttributes: { path: '/metrics', verb: 'get' },
      },
    },
  ]);
});

test.for([
  [undefined, 401],
  ['', 401],
  ['Basic Z29vZA==', 401],
  ['Bearer', 401],
  ['Bearer a b', 401],
  [`Bearer ${'x'.repeat(10_000)}`, 401],
])('without a token in %j the API server is not asked', async ([authorization, status]) => {
  const { ask, asked } = start();
  expect(await ask(authorization === undefined ? undefined : String(authorization))).toBe(status);
  expect(asked).toEqual([]);
});

test('a token that the API server does not know is 401, a user who may not is 403', async () => {
  const { ask, asked } = start();
  expect(await ask('Bearer unknown')).toBe(401);
  expect(await ask('bearer poor')).toBe(403);
  expect(await ask('Bearer good', 'PUT', '/debug/loglevel')).toBe(200);
  expect(asked.at(-1)?.spec).toMatchObject({
    nonResourceAttributes: { path: '/debug/loglevel', verb: 'put' },
  });
});

describe('a verdict is remembered', () => {
  test('for a minute if access is granted, and for each verb and path on its own', async () => {
    const { ask, asked, clock, server } = start();
    await ask('Bearer good');
    server.janeMay = false;
    clock.advance(59_999);
    expect(await ask('Bearer good')).toBe(200);
    expect(await ask('Bearer good', 'HEAD')).toBe(200);
    expect(asked).toHaveLength(2);
    expect(await ask('Bearer good', 'PUT')).toBe(403);
    clock.advance(1);
    expect(await ask('Bearer good')).toBe(403);
  });

  test('for ten seconds if not', async () => {
    const { ask, asked, clock, server } = start();
    server.janeMay = false;
    await ask('Bearer good');
    server.janeMay = true;
    clock.advance(9_999);
    expect(await ask('Bearer good')).toBe(403);
    expect(asked).toHaveLength(2);
    clock.advance(1);
    expect(await ask('Bearer good')).toBe(200);
  });

  test('not at all when the API server cannot be asked: 503, and no token in the log', async () => {
    const { ask, server, lines } = start();
    server.isDown = true;
    expect(await ask('Bearer good')).toBe(503);
    server.isDown = false;
    expect(await ask('Bearer good')).toBe(200);
    expect(lines).toHaveLength(1);
    expect(JSON.stringify(lines)).not.toContain('good');
  });
});

test('requests at the same time with one token ask once, and strangers cannot make us flood the API server', async () => {
  const { ask, asked, hold } = start();
  const { promise, resolve } = Promise.withResolvers<void>();
  hold.until = promise;
  const same = Array.from({ length: 50 }, () => ask('Bearer good'));
  const strangers = Array.from({ length: 50 }, (_, index) => ask(`Bearer stranger-${index}`));
  expect(asked).toHaveLength(4);
  resolve();
  expect(new Set(await Promise.all(same))).toEqual(new Set([200]));
  const answers = await Promise.all(strangers);
  expect(answers.filter((status) => status === 401)).toHaveLength(3);
  expect(answers.filter((status) => status === 503)).toHaveLength(47);
});
