import { describe, expect, test } from 'vitest';
import { type Scripted, VirtualWorld } from '../../test/virtual-world.ts';
import { ClientOptionsError, CloudClient } from './client.ts';
import {
  CloudError,
  ConnectionError,
  GoneError,
  InvalidRequestError,
  NameTakenError,
  NotFoundError,
  ProhibitedNameError,
  TooManyRequestsError,
  UnauthorizedError,
  UnavailableError,
  UnexpectedAnswerError,
} from './errors.ts';

const apiKey = 's3cret-s3"ret-s3cret';
const server = {
  id: '6f0c2b0a-0d53-4f6e-8f0a-8a1f8f1f0001',
  name: 'vmsample',
  labels: { tier: 'gold' },
  state: 'running',
  cpuUtilization: 50,
  createdAt: '2026-01-01T00:00:00.000Z',
};

function start(...script: Scripted[]) {
  const world = new VirtualWorld(...script);
  const requests: string[] = [];
  const observer = {
    answered: (method: string, route: string, code: string) =>
      void requests.push(`${method} ${route} ${code}`),
  };
  const client = new CloudClient({ world, url: 'http://cloud:8480/', apiKey, observer });
  return { world, client, requests };
}

function problem(status: number, code: string, more: object = {}): Scripted {
  return {
    status,
    body: { type: 'urn:x', title: 'x', status, detail: 'Test detail.', instance: 'urn:y', code, ...more },
  };
}

/** Returns the error of a call, advancing the virtual clock as far as needed. */
async function errorOf(world: VirtualWorld, call: Promise<unknown>): Promise<Error> {
  const caught = await world.runUntilSettled(
    call.then(
      () => undefined,
      (error) => error,
    ),
  );
  if (!(caught instanceof Error)) throw new Error(`the call did not fail: ${caught}`);
  return caught;
}

describe('requests', () => {
  test('requests carry the method, path, headers and body of their operation', async () => {
    const created = { status: 201, body: { ...server, state: 'building', cpuUtilization: 0 } };
    const { world, client, requests } = start(
      { status: 200, body: { name: 'a b', available: true } },
      created,
      { status: 200, body: server },
      { status: 200, body: { state: 'failed', cpuUtilization: 0, message: 'no memory' } },
      { status: 204 },
    );
    await client.check('a b');
    expect(await client.create({ name: 'vmsample', labels: { tier: 'gold' } }, 'the-uid')).toEqual(
      created.body,
    );
    expect(await client.get(server.id)).toEqual(server);
    expect(await client.status('a/b')).toEqual({ state: 'failed', cpuUtilization: 0, message: 'no memory' });
    await client.delete(server.id);
    expect(world.sent.map(({ method, path, body }) => [method, path, body])).toEqual([
      ['GET', '/check/a%20b', undefined],
      ['POST', '/servers', '{"name":"vmsample","labels":{"tier":"gold"}}'],
      ['GET', `/servers/${server.id}`, undefined],
      ['GET', '/servers/a%2Fb/status', undefined],
      ['DELETE', `/servers/${server.id}`, undefined],
    ]);
    expect(world.sent[1]?.headers).toEqual({
      accept: 'application/json, application/problem+json',
      authorization: `Bearer ${apiKey}`,
      'content-type': 'application/json',
      'idempotency-key': 'the-uid',
      'user-agent': 'vmwright-cloud-client',
    });
    expect(requests).toEqual([
      'GET /check/{name} 200',
      'POST /servers 201',
      'GET /servers/{id} 200',
      'GET /servers/{id}/status 200',
      'DELETE /servers/{id} 204',
    ]);
    expect(world.timers).toBe(0);
  });

  test('the path of the configured URL is the prefix of all request paths', async () => {
    const world = new VirtualWorld({ status: 200, body: server });
    const tls = async () => ({ ca: 'PEM' });
    await using client = new CloudClient({ world, url: 'https://cloud.example/private/', apiKey, tls });
    await client.get('x');
    expect(world.sent[0]?.path).toBe('/private/servers/x');
    expect(world.addresses).toEqual([{ origin: 'https://cloud.example', tls }]);
    await client.close();
    expect(world.closed).toBe(1);
  });

  test('a list follows the cursor to the last page', async () => {
    const second = { ...server, id: '6f0c2b0a-0d53-4f6e-8f0a-8a1f8f1f0002' };
    const { world, client } = start(
      { status: 200, body: { items: [server], next: 'MQ' } },
      { status: 200, body: { items: [second] } },
    );
    const pages = await Array.fromAsync(
      client.list({ name: 'x', labels: { owner: 'a=b&c', tier: undefined }, limit: 1 }),
    );
    expect(pages).toEqual([[server], [second]]);
    expect(world.sent.map(({ path }) => path)).toEqual([
      '/servers?limit=1&name=x&label=owner%3Da%3Db%26c&label=tier',
      '/servers?limit=1&name=x&label=owner%3Da%3Db%26c&label=tier&cursor=MQ',
    ]);
  });

  test.for([
    ['ftp://cloud', '"ftp://cloud" is not a valid cloud URL; an example is http://127.0.0.1:8480'],
    ['cloud:8480', '"cloud:8480" is not a valid cloud URL; an example is http://127.0.0.1:8480'],
  ])('the constructor rejects the invalid URL %s', ([url = '', message]) => {
    const create = () => new CloudClient({ world: new VirtualWorld(), url, apiKey });
    expect(create).toThrow(ClientOptionsError);
    expect(create).toThrow(message);
  });

  test('the constructor rejects a key with a line break, without quoting the key in the error', () => {
    const create = () =>
      new CloudClient({ world: new VirtualWorld(), url: 'http://cloud', apiKey: 's3cret\r\nx: y' });
    expect(create).toThrow('the API key is empty or contains whitespace or non-ASCII characters');
    expect(create).not.toThrow('s3cret');
  });
});

describe('responses', () => {
  test.for([
    [400, 'MALFORMED_REQUEST', InvalidRequestError, 'INVALID_REQUEST'],
    [401, 'UNAUTHORIZED', UnauthorizedError, 'UNAUTHORIZED'],
    [403, 'PROHIBITED_NAME', ProhibitedNameError, 'PROHIBITED_NAME'],
    [404, 'NOT_FOUND', NotFoundError, 'NOT_FOUND'],
    [409, 'NAME_TAKEN', NameTakenError, 'NAME_TAKEN'],
    [410, 'SERVER_GONE', GoneError, 'GONE'],
    [413, 'BODY_TOO_LARGE', InvalidRequestError, 'INVALID_REQUEST'],
    [422, 'INVALID_NAME', InvalidRequestError, 'INVALID_REQUEST'],
  ] as const)(
    'a response %i %s throws its error class and is not retried',
    async ([status, problemCode, Class, code]) => {
      const { world, client } = start(problem(status, problemCode, { serverId: server.id }));
      const error = await errorOf(world, client.create({ name: 'x' }, 'key'));
      expect(error).toBeInstanceOf(Class);
      expect(error).toMatchObject({
        code,
        status,
        problem: problemCode,
        message: 'POST /servers: Test detail.',
      });
      if (error instanceof NameTakenError || error instanceof GoneError)
        expect(error.serverId).toBe(server.id);
      expect(world.sent).toHaveLength(1);
    },
  );

  test.for([
    [404, '<html>no such host</html>'],
    [404, '{"code":"NO_SUCH_PATH","detail":"No operation exists at this path."}'],
    [403, 'Access denied by policy'],
    [409, '{"code":"NAME_TAKEN","detail":"The name is taken by a server that is not named."}'],
    [410, ''],
    [302, ''],
    [200, '<html>Log in</html>'],
    [200, '{"items":{}}'],
  ] as const)('a response %i with the body %s throws UnexpectedAnswerError', async ([status, body]) => {
    const { world, client } = start({ status, body });
    const error = await errorOf(world, client.get(server.id));
    expect(error).toBeInstanceOf(UnexpectedAnswerError);
    expect(error).toMatchObject({ code: 'UNEXPECTED_ANSWER', status });
  });

  test.for([
    [{ ...server, id: 5 }, '"id" is not a non-empty string'],
    [{ ...server, name: '' }, '"name" is not a non-empty string'],
    [{ ...server, state: 'asleep' }, '"state" is not one of building, running, failed, deleting'],
    [{ ...server, cpuUtilization: 101 }, '"cpuUtilization" is not an integer from 0 to 100'],
    [{ ...server, cpuUtilization: '50' }, '"cpuUtilization" is not an integer from 0 to 100'],
    [{ ...server, labels: { a: 1 } }, '"labels" is not an object of strings'],
    [{ ...server, createdAt: 'yesterday' }, '"createdAt" is not a timestamp'],
    [{ ...server, message: {} }, '"message" is not a string'],
    [[server], 'the response is not a server'],
  ] as const)(
    'a response with an invalid server throws UnexpectedAnswerError: %j',
    async ([body, message]) => {
      const { world, client } = start({ status: 200, body });
      const error = await errorOf(world, client.get('x'));
      expect(error).toBeInstanceOf(UnexpectedAnswerError);
      expect(error.message).toContain(message);
    },
  );

  test('an error does not contain the API key, even if the response contains it', async () => {
    for (const response of [
      problem(422, 'INVALID_REQUEST', { detail: `Bearer ${apiKey} is odd` }),
      { status: 500, body: apiKey },
      // The error quotes 300 characters. If the body were redacted after the cut, a part of the key would remain.
      { status: 502, body: `${'-'.repeat(290)}${apiKey}${'-'.repeat(290)}` },
      { status: 502, body: JSON.stringify({ sent: apiKey }) },
      { status: 200, body: `"${apiKey}` },
      new Error(`bad header: Bearer ${apiKey}`, { cause: apiKey }),
    ] satisfies Scripted[]) {
      const { world, client } = start(response);
      const error = await errorOf(world, client.create({ name: 'x' }, undefined));
      expect(`${error.message} ${error.stack} ${error.cause} ${JSON.stringify(error)}`).not.toContain('s3c');
    }
  });
});

describe('transient failures', () => {
  const lost = new Error('read ECONNRESET');
  const calls = {
    get: (client: CloudClient) => client.get('x'),
    delete: (client: CloudClient) => client.delete('x'),
    'create with a key': (client: CloudClient) => client.create({ name: 'x' }, 'key'),
    'create without a key': (client: CloudClient) => client.create({ name: 'x' }, undefined),
  };

  test.for(['get', 'delete', 'create with a key'] as const)(
    'a transient failure is retried with exponential back-off: %s',
    async (name) => {
      const { world, client } = start(lost, problem(503, 'UNAVAILABLE'), lost, { status: 200, body: server });
      await world.runUntilSettled<unknown>(calls[name](client));
      // The delay is 100 ms × 2ⁿ × jitter. The jitter is a factor of 0.5 to 1.5; in the virtual world it is always 1.
      expect(world.sentAt.map((at, index) => at - (world.sentAt[index - 1] ?? at))).toEqual([
        0, 100, 200, 400,
      ]);
      expect(new Set(world.sent.map((each) => each.headers['idempotency-key'])).size).toBe(1);
    },
  );

  test('a call without a response throws ConnectionError after four attempts', async () => {
    const { world, client, requests } = start(lost, lost, lost, lost, { status: 200, body: server });
    const error = await errorOf(world, client.get('x'));
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error).toMatchObject({ code: 'CONNECTION', message: 'GET /servers/x: read ECONNRESET' });
    expect(requests).toEqual(Array.from({ length: 4 }, () => 'GET /servers/{id} <error>'));
  });

  test('a create without an idempotency key is not retried after a lost response or a 503', async () => {
    const { world, client } = start(lost);
    const error = await errorOf(world, calls['create without a key'](client));
    expect(error.message).toBe(
      'POST /servers: read ECONNRESET; it is unknown whether the cloud executed the request',
    );
    const other = start(problem(503, 'UNAVAILABLE'));
    expect(await errorOf(other.world, calls['create without a key'](other.client))).toBeInstanceOf(
      UnavailableError,
    );
    expect([world.sent.length, other.world.sent.length]).toEqual([1, 1]);
  });

  test.for([
    [429, '2', 2_000],
    [429, '0.5', 500],
    [503, '3', 3_000],
    [503, 'Thu, 01 Jan 2026 00:00:04 GMT', 4_000],
    [503, 'Wed, 31 Dec 2025 00:00:04 GMT', 0],
    [503, 'soon', 0],
  ] as const)(
    'a transient failure with status %i and Retry-After "%s" is retried after %i ms plus the back-off',
    async ([status, after, ms]) => {
      const response = { status, body: 'later', headers: { 'retry-after': after } };
      const { world, client } = start(response, { status: 200, body: server });
      await world.runUntilSettled(client.get('x'));
      expect((world.sentAt[1] ?? 0) - (world.sentAt[0] ?? 0)).toBe(ms + 100);
    },
  );

  test('a create without an idempotency key is retried after a 429, unless Retry-After is long', async () => {
    const wait = (seconds: string) => ({ status: 429, body: '', headers: { 'retry-after': seconds } });
    const { world, client } = start(wait('1'), wait('60'));
    const error = await errorOf(world, calls['create without a key'](client));
    expect(error).toBeInstanceOf(TooManyRequestsError);
    expect(error).toMatchObject({ code: 'TOO_MANY_REQUESTS', retryAfterMs: 60_000, retryable: true });
    expect(world.sent).toHaveLength(2);
  });
});

describe('Retry-After', () => {
  const retryAfter = (status: number, after: string): Scripted => ({
    status,
    headers: { 'retry-after': after },
  });
  const ok: Scripted = { status: 200, body: server };
  const offsetsOf = ({ sentAt }: VirtualWorld) => sentAt.map((at) => at - (sentAt[0] ?? 0));

  test.for([429, 503])('the Retry-After of a %i also delays the requests of other calls', async (status) => {
    const { world, client, requests } = start(retryAfter(status, '2'), ok, ok);
    const first = client.get('a');
    await world.requests(1);
    while (requests.length === 0) await Promise.resolve();
    const second = client.get('b');
    await world.runUntilSettled(Promise.all([first, second]));
    expect(offsetsOf(world)).toEqual([0, 2_100, 2_100]);
    expect(requests).toHaveLength(3); // the observer gets only requests that were sent
  });

  test('a Retry-After still blocks new calls after the calls that received it have failed', async () => {
    const { world, client } = start(...Array.from({ length: 4 }, () => retryAfter(429, '2')), ok);
    await errorOf(world, client.get('a'));
    const error = await errorOf(world, client.check('b', { tries: 1 }));
    expect(error).toBeInstanceOf(TooManyRequestsError);
    expect(error).toMatchObject({ retryAfterMs: 2_000, message: expect.stringMatching(/^GET \/check\/b: /) });
    expect(world.sent).toHaveLength(4);
    await world.runUntilSettled(client.get('c'));
    expect((world.sentAt[4] ?? 0) - (world.sentAt[3] ?? 0)).toBe(2_100);
  });

  test('the longest Retry-After of concurrent responses applies, limited to one minute', async () => {
    const { world, client } = start(retryAfter(429, '3600'), retryAfter(429, '7'), ok);
    const [longest] = await Promise.all([errorOf(world, client.get('a')), errorOf(world, client.get('b'))]);
    expect(longest).toMatchObject({ retryAfterMs: 60_000 });
    world.advance(59_999);
    expect(await errorOf(world, client.get('c', { tries: 1 }))).toMatchObject({ retryAfterMs: 1 });
    world.advance(1);
    await world.runUntilSettled(client.get('c', { tries: 1 }));
    expect(offsetsOf(world)).toEqual([0, 0, 60_000]);
  });
});

describe('API keys', () => {
  function startWith(key: () => string, ...script: Scripted[]) {
    const world = new VirtualWorld(...script);
    return { world, client: new CloudClient({ world, url: 'http://cloud:8480/', apiKey: key }) };
  }
  const unauthorized = problem(401, 'UNAUTHORIZED');

  test('a rejected API key is not sent again for one second', async () => {
    const { world, client } = start(unauthorized, unauthorized);
    for (const id of ['a', 'b', 'c']) {
      const error = await errorOf(world, client.get(id));
      expect(error).toBeInstanceOf(UnauthorizedError);
      expect(error).toMatchObject({ status: 401, detail: 'Test detail.' });
    }
    expect(world.sent).toHaveLength(1);
    world.advance(1_000);
    await errorOf(world, client.get('d'));
    expect(world.sent).toHaveLength(2);
  });

  test('after the cloud has rejected an API key, another key is sent immediately', async () => {
    let key = 'old';
    const { world, client } = startWith(() => key, unauthorized, { status: 200, body: server });
    await errorOf(world, client.get('a'));
    key = 'new';
    await client.get('a');
    expect(world.sent.map(({ headers }) => headers.authorization)).toEqual(['Bearer old', 'Bearer new']);
    expect(world.sentAt[1]).toBe(world.sentAt[0]);
  });

  test('if the apiKey function throws, the call rejects with the thrown error; the function is called once per attempt', async () => {
    const missing = new Error('no key');
    const { world, client } = startWith(() => {
      throw missing;
    });
    await expect(client.get('a')).rejects.toBe(missing);
    expect([world.sent.length, world.timers]).toEqual([0, 0]);

    let reads = 0;
    const once = () => {
      if (reads++ > 0) throw missing;
      return apiKey;
    };
    const other = startWith(once, new Error(`bad header: Bearer ${apiKey}`));
    const error = await errorOf(other.world, other.client.get('a', { tries: 1 }));
    expect(error.message).toBe('GET /servers/a: bad header: Bearer [redacted]');
  });
});

describe('timeouts and cancellation', () => {
  test('the timeout applies to each attempt', async () => {
    const { world, client } = start('never', { status: 200, body: server });
    await world.runUntilSettled(client.get('x', { timeoutMs: 2_000 }));
    expect((world.sentAt[1] ?? 0) - (world.sentAt[0] ?? 0)).toBe(2_100);
    const other = start('never');
    const error = await errorOf(other.world, other.client.create({ name: 'x' }, undefined));
    expect(error.message).toBe(
      'POST /servers: no response within 10 s; it is unknown whether the cloud executed the request',
    );
  });

  test('an aborted signal rejects the call immediately with the abort reason and leaves no timer', async () => {
    const { world, client } = start('never');
    const stop = new AbortController();
    const reason = new Error('the reconcile was stopped');
    const call = client.get('x', { signal: stop.signal });
    await world.requests(1);
    stop.abort(reason);
    await expect(call).rejects.toBe(reason);
    await expect(client.get('x', { signal: stop.signal })).rejects.toBe(reason);
    expect(world.sent).toHaveLength(1);
    expect(world.timers).toBe(0);
  });

  test('an aborted signal ends the wait between two attempts', async () => {
    const { world, client } = start({ status: 503, headers: { 'retry-after': '4' } });
    const stop = new AbortController();
    const call = client.get('x', { signal: stop.signal });
    await world.requests(1);
    while (world.timers !== 1) await Promise.resolve();
    await Promise.resolve();
    stop.abort(new Error('stopped'));
    await expect(call).rejects.toThrow('stopped');
    expect(world.timers).toBe(0);
  });
});

describe('scoped clients', () => {
  test('a scoped client calls assertLeader before each attempt of a write, but not for reads', async () => {
    const checks: number[] = [];
    const { world, client } = start(
      { status: 200, body: server },
      { status: 503 },
      { status: 201, body: server },
      { status: 204 },
    );
    const scoped = client.scoped({ assertLeader: () => void checks.push(world.sent.length) });
    await world.runUntilSettled(scoped.get('x'));
    await world.runUntilSettled(scoped.create({ name: 'x' }, 'key'));
    await world.runUntilSettled(scoped.delete('x'));
    expect(checks).toEqual([1, 2, 3]);
  });

  test('a scoped client does not retry a write when assertLeader throws', async () => {
    class LeadershipLostError extends Error {}
    const { world, client } = start({ status: 503 }, { status: 201, body: server });
    let open = true;
    const scoped = client.scoped({
      assertLeader: () => {
        if (!open) throw new LeadershipLostError('no longer the leader');
      },
    });
    const call = scoped.create({ name: 'x' }, 'key');
    await world.requests(1);
    open = false; // leadership is lost between the first attempt and the second
    expect(await errorOf(world, call)).toBeInstanceOf(LeadershipLostError);
    expect(world.sent).toHaveLength(1);
  });

  test('the signal of a scope aborts its calls, and closing a scoped client closes no connection', async () => {
    const { world, client } = start();
    const stop = new AbortController();
    const scoped = client.scoped({ assertLeader: () => undefined, signal: stop.signal });
    const call = scoped.get('x');
    await world.requests(1);
    stop.abort(new Error('scope ended'));
    await expect(call).rejects.toThrow('scope ended');
    await scoped.close();
    expect([world.closed, world.addresses.length]).toEqual([0, 1]);
  });
});

test('every error class has its own name and code', () => {
  const details = { status: 400 };
  const all = [
    CloudError,
    GoneError,
    InvalidRequestError,
    NameTakenError,
    NotFoundError,
    ProhibitedNameError,
    TooManyRequestsError,
    UnauthorizedError,
    UnavailableError,
    UnexpectedAnswerError,
  ].map((Class) => new Class('x', details));
  expect(new Set(all.map(({ code }) => code)).size).toBe(all.length);
  expect(all.filter(({ retryable }) => retryable).map(({ name }) => name)).toEqual([
    'TooManyRequestsError',
    'UnavailableError',
  ]);
});
