import type { IncomingMessage } from 'node:http';
import { collectingLogger } from '@vmwright/core';
import { VirtualClock } from '@vmwright/core/testing';
import { describe, expect, test } from 'vitest';
import type { Kind } from '../kind/kind.ts';
import { RequestError } from './http-response.ts';
import { TokenAccess } from './token-access.ts';

/** Simulates an API server that knows the tokens `good` (jane) and `poor` (joe), and allows only jane's requests. */
function start() {
  const clock = new VirtualClock();
  const { logger, lines } = collectingLogger();
  const reviews: { readonly kind: string; readonly spec: object }[] = [];
  const users: Record<string, string> = { good: 'jane', poor: 'joe' };
  const server = { isDown: false, janeMay: true };
  const hold: { until: Promise<void> | undefined } = { until: undefined };
  const client = {
    review: async ({ kind }: Kind, spec: object): Promise<Readonly<Record<string, unknown>>> => {
      reviews.push({ kind, spec });
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
  const request = async (authorization: string | undefined, method = 'GET', path = '/metrics') => {
    try {
      const message = { headers: { authorization }, method } as unknown as IncomingMessage;
      await access.assert(message, path);
      return 200;
    } catch (error) {
      if (error instanceof RequestError) return error.status;
      throw error;
    }
  };
  return { clock, lines, reviews, server, hold, request };
}

test('a user gets access if RBAC allows the verb on the path', async () => {
  const { request, reviews } = start();
  expect(await request('Bearer good')).toBe(200);
  expect(reviews).toEqual([
    { kind: 'TokenReview', spec: { token: 'good' } },
    {
      kind: 'SubjectAccessReview',
      spec: {
        user: 'jane',
        uid: 'u',
        groups: ['g'],
        extra: { a: ['b'] },
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
])(
  'the invalid Authorization header %j is rejected without a TokenReview',
  async ([authorization, status]) => {
    const { request, reviews } = start();
    expect(await request(authorization === undefined ? undefined : String(authorization))).toBe(status);
    expect(reviews).toEqual([]);
  },
);

test('an invalid token gets 401, and the token of a user without permission gets 403', async () => {
  const { request, reviews } = start();
  expect(await request('Bearer unknown')).toBe(401);
  expect(await request('bearer poor')).toBe(403);
  expect(await request('Bearer good', 'PUT', '/debug/loglevel')).toBe(200);
  expect(reviews.at(-1)?.spec).toMatchObject({
    nonResourceAttributes: { path: '/debug/loglevel', verb: 'put' },
  });
});

describe('cache of verdicts', () => {
  test('the cache of verdicts keeps an approval for a minute, separately for each verb and path', async () => {
    const { request, reviews, clock, server } = start();
    await request('Bearer good');
    server.janeMay = false;
    clock.advance(59_999);
    expect(await request('Bearer good')).toBe(200);
    expect(await request('Bearer good', 'HEAD')).toBe(200);
    expect(reviews).toHaveLength(2);
    expect(await request('Bearer good', 'PUT')).toBe(403);
    clock.advance(1);
    expect(await request('Bearer good')).toBe(403);
  });

  test('the cache of verdicts keeps a denial for ten seconds', async () => {
    const { request, reviews, clock, server } = start();
    server.janeMay = false;
    await request('Bearer good');
    server.janeMay = true;
    clock.advance(9_999);
    expect(await request('Bearer good')).toBe(403);
    expect(reviews).toHaveLength(2);
    clock.advance(1);
    expect(await request('Bearer good')).toBe(200);
  });

  test('the cache of verdicts does not keep the 503 of a failed review', async () => {
    const { request, server, lines } = start();
    server.isDown = true;
    expect(await request('Bearer good')).toBe(503);
    server.isDown = false;
    expect(await request('Bearer good')).toBe(200);
    expect(lines).toHaveLength(1);
    expect(JSON.stringify(lines)).not.toContain('good');
  });
});

test('concurrent requests with one token share a review, and invalid tokens cannot flood the API server', async () => {
  const { request, reviews, hold } = start();
  const { promise, resolve } = Promise.withResolvers<void>();
  hold.until = promise;
  const same = Array.from({ length: 50 }, () => request('Bearer good'));
  const invalid = Array.from({ length: 50 }, (_, index) => request(`Bearer invalid-${index}`));
  expect(reviews).toHaveLength(4);
  resolve();
  expect(new Set(await Promise.all(same))).toEqual(new Set([200]));
  const statuses = await Promise.all(invalid);
  expect(statuses.filter((status) => status === 401)).toHaveLength(3);
  expect(statuses.filter((status) => status === 503)).toHaveLength(47);
});
