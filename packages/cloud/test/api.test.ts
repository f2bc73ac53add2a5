import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { serverIn } from '../src/client/answers.ts';
import { GoneError, NotFoundError } from '../src/index.ts';
import { API_KEY, CloudProcess } from './cloud-process.ts';

const SLOW = {
  observeEveryMs: 10,
  simulated: { bootMs: { min: 3_600_000, max: 3_600_000 }, stopMs: { min: 3_600_000, max: 3_600_000 } },
};

async function post(cloud: CloudProcess, body: unknown, key?: string): Promise<Response> {
  const headers = {
    'content-type': 'application/json',
    ...(key !== undefined && { 'idempotency-key': key }),
  };
  return cloud.fetch('/servers', { method: 'POST', headers, body: JSON.stringify(body) });
}

/** An answer without what is new each time. */
async function told(response: Response): Promise<unknown> {
  const { instance, ...rest } = Object(await response.json());
  expect(instance).toMatch(/^urn:uuid:[\da-f-]{36}$/);
  expect(response.headers.get('content-type')).toBe('application/problem+json; charset=utf-8');
  return rest;
}

describe('a server', () => {
  test('is built, runs, uses CPU, is deleted and is gone', async () => {
    await using cloud = await CloudProcess.start();
    const { client } = cloud;
    await client.check('vmsample');
    const response = await post(cloud, { name: 'vmsample', labels: { tier: 'gold' } });
    const server = serverIn(await response.text());
    expect(response.status).toBe(201);
    expect(response.headers.get('location')).toBe(`/servers/${server.id}`);
    expect(server).toEqual({
      id: expect.stringMatching(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/),
      name: 'vmsample',
      labels: { tier: 'gold' },
      state: 'building',
      cpuUtilization: 0,
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    });
    await cloud.audited('running', server.id);
    expect(await client.get(server.id)).toEqual({ ...server, state: 'running', cpuUtilization: 40 });
    expect(await client.status(server.id)).toEqual({ state: 'running', cpuUtilization: 40 });
    await client.delete(server.id);
    await cloud.audited('deleted', server.id);
    await expect(client.get(server.id)).rejects.toThrow(NotFoundError);
    await expect(client.delete(server.id)).rejects.toThrow(NotFoundError);
    await client.check('vmsample'); // the name is free again
    expect(cloud.audit.map(({ event, name }) => `${event} ${name}`)).toEqual([
      'created vmsample',
      'running vmsample',
      'deleting vmsample',
      'deleted vmsample',
    ]);
  });

  test('is shown as deleting, and keeps its name, until its machine is gone', async () => {
    await using cloud = await CloudProcess.start({ config: SLOW });
    const { client } = cloud;
    const { id } = await client.create({ name: 'x' }, 'key');
    await client.delete(id);
    await client.delete(id);
    expect(await client.get(id)).toMatchObject({ state: 'deleting', cpuUtilization: 0 });
    await expect(client.check('x')).rejects.toThrow(
      `GET /check/x: The name "x" is taken by the server ${id}, which is being deleted. Choose another name, or delete that server.`,
    );
    await expect(client.create({ name: 'x' }, 'key')).rejects.toThrow(GoneError);
  });

  test('that fails says why', async () => {
    const config = { observeEveryMs: 10, simulated: { bootMs: { min: 0, max: 1 }, failureProbability: 1 } };
    await using cloud = await CloudProcess.start({ config });
    const { id } = await cloud.client.create({ name: 'x' }, 'key');
    expect(await cloud.audited('failed', id)).toMatchObject({
      key: 'key',
      message: 'the simulated boot has failed',
    });
    expect(await cloud.client.status(id)).toEqual({
      state: 'failed',
      cpuUtilization: 0,
      message: 'the simulated boot has failed',
    });
  });
});

describe('labels', () => {
  test('are set, taken away and kept, and lists go by what they are then', async () => {
    await using cloud = await CloudProcess.start();
    const { client } = cloud;
    const { id } = await client.create(
      { name: 'vmlabels', labels: { tier: 'gold', owner: 'ops' } },
      'labels',
    );
    const changed = await client.relabel(id, { tier: null, color: 'red', missing: null });
    expect(changed.labels).toEqual({ owner: 'ops', color: 'red' });
    const found = async (labels: Record<string, string | undefined>) => {
      for await (const page of client.list({ labels })) return page.map((server) => server.id);
      return [];
    };
    expect([await found({ color: 'red' }), await found({ tier: undefined })]).toEqual([[id], []]);
    await cloud.kill();
    await cloud.start();
    expect((await cloud.client.get(id)).labels).toEqual({ owner: 'ops', color: 'red' });
    // The key still stands for the server as it was asked for.
    const again = await cloud.client.create(
      { name: 'vmlabels', labels: { tier: 'gold', owner: 'ops' } },
      'labels',
    );
    expect(again.id).toBe(id);
    const many = Object.fromEntries(Array.from({ length: 63 }, (_, i) => [`l${i}`, 'x']));
    await expect(cloud.client.relabel(id, many)).rejects.toThrow(
      'A server has at most 64 labels. Take some away first.',
    );
    await expect(cloud.client.relabel('none', {})).rejects.toBeInstanceOf(NotFoundError);
  });
});

describe('a key', () => {
  test('makes one server, however often it is sent, also at the same moment and after a restart', async () => {
    await using cloud = await CloudProcess.start({ config: SLOW });
    const body = { name: 'x', labels: { b: '1', a: '2' } };
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(cloud, body, 'k')));
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(19).fill(200), 201]);
    const servers = await Promise.all(answers.map((answer) => answer.json()));
    await cloud.kill();
    await cloud.start();
    const again = await post(cloud, { labels: { a: '2', b: '1' }, name: 'x' }, 'k');
    expect(again.status).toBe(200);
    expect(new Set([...servers, await again.json()].map((each) => JSON.stringify(each))).size).toBe(1);
  });

  test('outlives the prohibition of its name: who has it keeps it', async () => {
    await using cloud = await CloudProcess.start({ config: SLOW });
    const first = await cloud.client.create({ name: 'x' }, 'k');
    writeFileSync(cloud.prohibited, 'x\n');
    cloud.signal('SIGHUP');
    await cloud.logged(/the prohibited names were read again/);
    expect(await cloud.client.create({ name: 'x' }, 'k')).toEqual(first);
    expect((await post(cloud, { name: 'X' }, 'other')).status).toBe(403);
  });
});

describe('what is refused, in which words:', () => {
  const name = 'a name has 1 to 63 letters, digits, hyphens, underscores and dots';

  test('names', async () => {
    await using cloud = await CloudProcess.start({
      config: SLOW,
      prohibited: ['root  it is the superuser’s', 'prod-*'],
    });
    const { id } = await cloud.client.create({ name: 'mine' }, 'k');
    const problem = (status: number, code: string, title: string, detail: string, more: object = {}) => ({
      type: `urn:vmwright:cloud:${code.toLowerCase().replaceAll('_', '-')}`,
      ...{ title, status, detail, code, ...more },
    });
    const prohibited = 'The name is prohibited';
    const taken = `The name "mine" is taken by the server ${id}. Choose another name, or delete that server.`;
    for (const [sent, expected] of [
      [
        'Root',
        problem(
          403,
          'PROHIBITED_NAME',
          prohibited,
          'The name "Root" is prohibited: it is the superuser’s. Choose another name.',
        ),
      ],
      [
        'prod-1',
        problem(403, 'PROHIBITED_NAME', prohibited, 'The name "prod-1" is prohibited. Choose another name.'),
      ],
      ['mine', problem(409, 'NAME_TAKEN', 'Another server has the name', taken, { serverId: id })],
      [
        'a b',
        problem(
          422,
          'INVALID_NAME',
          'This is no name for a server',
          `"a b" is no name for a server: ${name}.`,
        ),
      ],
      [
        '',
        problem(422, 'INVALID_NAME', 'This is no name for a server', `"" is no name for a server: ${name}.`),
      ],
      [
        'x'.repeat(64),
        problem(
          422,
          'INVALID_NAME',
          'This is no name for a server',
          `"${'x'.repeat(64)}" is no name for a server: ${name}.`,
        ),
      ],
      [
        'ä',
        problem(422, 'INVALID_NAME', 'This is no name for a server', `"ä" is no name for a server: ${name}.`),
      ],
    ] as const) {
      expect(await told(await cloud.fetch(`/check/${encodeURIComponent(sent)}`)), `check ${sent}`).toEqual(
        expected,
      );
      expect(await told(await post(cloud, { name: sent })), `create ${sent}`).toEqual(expected);
    }
    await cloud.client.check('x'.repeat(63));
  });

  test('keys', async () => {
    await using cloud = await CloudProcess.start({ config: SLOW });
    const { id } = await cloud.client.create({ name: 'x' }, 'k');
    expect(await told(await post(cloud, { name: 'y' }, 'k'))).toMatchObject({
      status: 422,
      code: 'IDEMPOTENCY_KEY_REUSED',
      detail:
        'This Idempotency-Key came with another body before. A key stands for one server: take a new key for another.',
    });
    expect(await told(await post(cloud, { name: 'y' }, 'with space'))).toMatchObject({
      status: 422,
      code: 'INVALID_REQUEST',
      detail:
        'The headers: idempotency-key must match pattern "^[!-~]{1,255}$". GET /openapi.json says what is expected.',
    });
    await cloud.client.delete(id);
    expect(await told(await post(cloud, { name: 'x' }, 'k'))).toMatchObject({
      status: 410,
      code: 'SERVER_GONE',
      serverId: id,
      detail: `The server ${id} of this Idempotency-Key was deleted. Take a new key for a new server.`,
    });
  });

  test('everything else', async () => {
    await using cloud = await CloudProcess.start();
    const json = { 'content-type': 'application/json' };
    const expected = 'GET /openapi.json says what is expected.';
    for (const [path, init, status, code, detail] of [
      [
        '/servers/x',
        {},
        404,
        'NOT_FOUND',
        'There is no server x. It may have been deleted; GET /servers lists those there are.',
      ],
      [
        '/nothing',
        {},
        404,
        'NO_SUCH_PATH',
        'There is nothing at this path. GET /openapi.json says what there is.',
      ],
      [
        '/faults',
        {},
        404,
        'NO_SUCH_PATH',
        'There is nothing at this path. GET /openapi.json says what there is.',
      ],
      [
        '/servers',
        { method: 'PATCH' },
        405,
        'METHOD_NOT_ALLOWED',
        'There is no PATCH here, only POST, GET, HEAD.',
      ],
      ['/servers?limit=0', {}, 422, 'INVALID_REQUEST', `The query: limit must be >= 1. ${expected}`],
      ['/servers?limit=1001', {}, 422, 'INVALID_REQUEST', `The query: limit must be <= 1000. ${expected}`],
      ['/servers?limit=ten', {}, 422, 'INVALID_REQUEST', `The query: limit must be integer. ${expected}`],
      [
        '/servers?limit=1&limit=2',
        {},
        422,
        'INVALID_REQUEST',
        `The query: limit must be integer. ${expected}`,
      ],
      [
        '/servers?labels=a',
        {},
        422,
        'INVALID_REQUEST',
        `The query has "labels", which means nothing here. ${expected}`,
      ],
      [
        '/servers?cursor=eA',
        {},
        422,
        'INVALID_REQUEST',
        `The query: cursor must match pattern "^[0-9]{1,15}$". ${expected}`,
      ],
      [
        '/servers',
        { headers: { authorization: 'Basic x' } },
        401,
        'UNAUTHORIZED',
        'Send `Authorization: Bearer <API key>` with one of the keys of this cloud.',
      ],
      [
        '/servers',
        { method: 'POST', headers: json, body: '{' },
        400,
        'MALFORMED_REQUEST',
        'The body is no JSON.',
      ],
      [
        '/servers',
        { method: 'POST', body: 'x' },
        415,
        'UNSUPPORTED_MEDIA_TYPE',
        'The body must be JSON, sent as application/json.',
      ],
      [
        '/servers',
        { method: 'POST', headers: json, body: '{"labels":{}}' },
        422,
        'INVALID_REQUEST',
        `The body must have required property 'name'. ${expected}`,
      ],
      [
        '/servers',
        { method: 'POST', headers: json, body: '{"name":5}' },
        422,
        'INVALID_REQUEST',
        `The body: name must be string. ${expected}`,
      ],
      [
        '/servers',
        { method: 'POST', headers: json, body: `{"name":"${'x'.repeat(70_000)}"}` },
        413,
        'BODY_TOO_LARGE',
        'The body is too large: no server needs more than 64 KiB.',
      ],
    ] as const)
      expect(await told(await cloud.fetch(path, init)), `${path} ${JSON.stringify(init)}`).toMatchObject({
        status,
        code,
        detail,
      });
  });

  test('what is no request at all', async () => {
    await using cloud = await CloudProcess.start();
    const raw = async (bytes: string) => {
      const socket = connect(Number(new URL(cloud.url).port), '127.0.0.1').setEncoding('utf8');
      socket.write(bytes);
      return (await socket.toArray()).join('');
    };
    expect(await raw('not HTTP\r\n\r\n')).toMatch(
      /^HTTP\/1.1 400 .*application\/problem\+json.*"This is no HTTP."/s,
    );
    expect(await raw(`GET / HTTP/1.1\r\nHost: x\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`)).toMatch(
      /^HTTP\/1.1 431 .*"code":"HEADERS_TOO_LARGE"/s,
    );
    // Methods that the HTTP parser does not know, ones that the framework does not, and ones that the path does not have.
    for (const method of ['BREW', 'x-y', 'PROPFIND', 'PURGE', 'TRACE', 'PUT'])
      expect(
        await raw(`${method} /servers?limit=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`),
        method,
      ).toMatch(
        new RegExp(
          `^HTTP/1.1 405 .*\r\nallow: POST, GET, HEAD\r\n.*"There is no ${method} here, only POST, GET, HEAD."`,
          's',
        ),
      );
    expect(await raw('BREW /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).toMatch(
      /^HTTP\/1.1 404 /,
    );
    const leaver = connect(Number(new URL(cloud.url).port), '127.0.0.1');
    leaver.write(
      `POST /servers HTTP/1.1\r\nHost: x\r\nauthorization: Bearer ${API_KEY}\r\ncontent-length: 10\r\n\r\n{`,
    );
    leaver.destroy();
    await once(leaver, 'close');
    expect((await cloud.fetch('/healthz')).status).toBe(200);
  });
});

describe('lists', () => {
  test('a thousand servers, with what changes about them, are one call', async () => {
    await using cloud = await CloudProcess.start();
    const { client } = cloud;
    const names = Array.from({ length: 1_000 }, (_, at) => `vm-${at}`);
    await Promise.all(names.map((name) => client.create({ name, labels: { fleet: 'a' } }, name)));
    for (const { id } of cloud.audit.filter(({ event }) => event === 'created'))
      await cloud.audited('running', id);
    const pages = await Array.fromAsync(client.list({ labels: { fleet: 'a' } }));
    expect(pages).toHaveLength(1);
    expect(pages[0]?.every(({ state, cpuUtilization }) => state === 'running' && cpuUtilization === 40)).toBe(
      true,
    );
    expect(new Set(pages[0]?.map(({ name }) => name))).toEqual(new Set(names));
    expect((await Array.fromAsync(client.list({ limit: 300 }))).map((page) => page.length)).toEqual([
      300, 300, 300, 100,
    ]);
    expect(await Array.fromAsync(client.list({ name: 'vm-7' }))).toMatchObject([[{ name: 'vm-7' }]]);
    expect(await Array.fromAsync(client.list({ labels: { fleet: 'b' } }))).toEqual([[]]);
  });
});

test('metrics, health and the document need no key', async () => {
  await using cloud = await CloudProcess.start();
  const { id } = await cloud.client.create({ name: 'x' }, 'k');
  await cloud.audited('running', id);
  await cloud.client.get('none').catch(() => undefined);
  for (const path of ['/healthz', '/readyz'])
    expect(await (await fetch(`${cloud.url}${path}`)).json()).toEqual({ status: 'ok' });
  expect((await fetch(`${cloud.url}/openapi.json`)).status).toBe(200);
  const metrics = await (await fetch(`${cloud.url}/metrics`)).text();
  for (const line of [
    'vmwright_cloud_http_request_duration_seconds_count{route="/servers",method="POST",code="201"} 1',
    'vmwright_cloud_http_request_duration_seconds_count{route="/servers/{id}",method="GET",code="404"} 1',
    'vmwright_cloud_servers{state="running"} 1',
    'vmwright_cloud_driver_operations_total{operation="start",result="success"} 1',
  ])
    expect(metrics.split('\n')).toContain(line);
  expect(metrics).not.toContain('none');
});
