import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { parseServer } from '../src/client/responses.ts';
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

/** Checks that a response is a problem document, and returns it without its instance. */
async function problemOf(response: Response): Promise<unknown> {
  const { instance, ...rest } = Object(await response.json());
  expect(instance).toMatch(/^urn:uuid:[\da-f-]{36}$/);
  expect(response.headers.get('content-type')).toBe('application/problem+json; charset=utf-8');
  return rest;
}

describe('servers', () => {
  test('a server is building, then running, then deleting, and then does not exist', async () => {
    await using cloud = await CloudProcess.start();
    const { client } = cloud;
    await client.check('vmsample');
    const response = await post(cloud, { name: 'vmsample', labels: { tier: 'gold' } });
    const server = parseServer(await response.text());
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
    await client.check('vmsample'); // the name is available again
    expect(cloud.audit.map(({ event, name }) => `${event} ${name}`)).toEqual([
      'created vmsample',
      'running vmsample',
      'deleting vmsample',
      'deleted vmsample',
    ]);
  });

  test('a deleted server keeps its name until its machine is removed', async () => {
    await using cloud = await CloudProcess.start({ config: SLOW });
    const { client } = cloud;
    const { id } = await client.create({ name: 'x' }, 'key');
    await client.delete(id);
    await client.delete(id);
    expect(await client.get(id)).toMatchObject({ state: 'deleting', cpuUtilization: 0 });
    await expect(client.check('x')).rejects.toThrow(
      `GET /check/x: The name "x" is taken by the server ${id}, which is being deleted. Choose another name, or wait until the deletion has finished.`,
    );
    await expect(client.create({ name: 'x' }, 'key')).rejects.toThrow(GoneError);
  });

  test('a server has a message with the cause if it failed', async () => {
    const config = { observeEveryMs: 10, simulated: { bootMs: { min: 0, max: 1 }, failureProbability: 1 } };
    await using cloud = await CloudProcess.start({ config });
    const { id } = await cloud.client.create({ name: 'x' }, 'key');
    expect(await cloud.audited('failed', id)).toMatchObject({
      key: 'key',
      message: 'simulated boot failure',
    });
    expect(await cloud.client.status(id)).toEqual({
      state: 'failed',
      cpuUtilization: 0,
      message: 'simulated boot failure',
    });
  });
});

describe('labels', () => {
  test('labels are set and removed, survive a restart, and select servers in lists', async () => {
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
    // The idempotency key still refers to the body of the original request.
    const again = await cloud.client.create(
      { name: 'vmlabels', labels: { tier: 'gold', owner: 'ops' } },
      'labels',
    );
    expect(again.id).toBe(id);
    const many = Object.fromEntries(Array.from({ length: 63 }, (_, i) => [`l${i}`, 'x']));
    await expect(cloud.client.relabel(id, many)).rejects.toThrow(
      'A server has at most 64 labels. Remove some labels first.',
    );
    await expect(cloud.client.relabel('none', {})).rejects.toBeInstanceOf(NotFoundError);
  });
});

describe('idempotency keys', () => {
  test('an idempotency key creates one server, even with concurrent requests and after a restart', async () => {
    await using cloud = await CloudProcess.start({ config: SLOW });
    const body = { name: 'x', labels: { b: '1', a: '2' } };
    const responses = await Promise.all(Array.from({ length: 20 }, () => post(cloud, body, 'k')));
    expect(responses.map(({ status }) => status).sort()).toEqual([...Array(19).fill(200), 201]);
    const servers = await Promise.all(responses.map((response) => response.json()));
    await cloud.kill();
    await cloud.start();
    const again = await post(cloud, { labels: { a: '2', b: '1' }, name: 'x' }, 'k');
    expect(again.status).toBe(200);
    expect(new Set([...servers, await again.json()].map((each) => JSON.stringify(each))).size).toBe(1);
  });

  test('an idempotency key still returns its server after the name was prohibited', async () => {
    await using cloud = await CloudProcess.start({ config: SLOW });
    const first = await cloud.client.create({ name: 'x' }, 'k');
    writeFileSync(cloud.prohibited, 'x\n');
    cloud.signal('SIGHUP');
    await cloud.logged(/Reloaded prohibited names/);
    expect(await cloud.client.create({ name: 'x' }, 'k')).toEqual(first);
    expect((await post(cloud, { name: 'X' }, 'other')).status).toBe(403);
  });
});

describe('problem documents', () => {
  const rule = 'a name has 1 to 63 characters, each a letter, digit, hyphen, underscore or dot';

  test('the cloud responds with problem documents for prohibited, taken and invalid names', async () => {
    await using cloud = await CloudProcess.start({
      config: SLOW,
      prohibited: ['root  it is the superuser’s', 'prod-*'],
    });
    const { id } = await cloud.client.create({ name: 'mine' }, 'k');
    const problem = (status: number, code: string, title: string, detail: string, extras: object = {}) => ({
      type: `urn:vmwright:cloud:${code.toLowerCase().replaceAll('_', '-')}`,
      title,
      status,
      detail,
      code,
      ...extras,
    });
    const prohibited = 'Prohibited name';
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
      ['mine', problem(409, 'NAME_TAKEN', 'Name already taken', taken, { serverId: id })],
      [
        'a b',
        problem(422, 'INVALID_NAME', 'Invalid server name', `"a b" is not a valid server name: ${rule}.`),
      ],
      ['', problem(422, 'INVALID_NAME', 'Invalid server name', `"" is not a valid server name: ${rule}.`)],
      [
        'x'.repeat(64),
        problem(
          422,
          'INVALID_NAME',
          'Invalid server name',
          `"${'x'.repeat(64)}" is not a valid server name: ${rule}.`,
        ),
      ],
      ['ä', problem(422, 'INVALID_NAME', 'Invalid server name', `"ä" is not a valid server name: ${rule}.`)],
    ] as const) {
      expect(
        await problemOf(await cloud.fetch(`/check/${encodeURIComponent(sent)}`)),
        `check ${sent}`,
      ).toEqual(expected);
      expect(await problemOf(await post(cloud, { name: sent })), `create ${sent}`).toEqual(expected);
    }
    await cloud.client.check('x'.repeat(63));
  });

  test('the cloud responds with a problem document if an idempotency key is invalid, is reused, or belongs to a deleted server', async () => {
    await using cloud = await CloudProcess.start({ config: SLOW });
    const { id } = await cloud.client.create({ name: 'x' }, 'k');
    expect(await problemOf(await post(cloud, { name: 'y' }, 'k'))).toMatchObject({
      status: 422,
      code: 'IDEMPOTENCY_KEY_REUSED',
      detail:
        'This Idempotency-Key was already used with a different body. Use a new key to create another server.',
    });
    expect(await problemOf(await post(cloud, { name: 'y' }, 'with space'))).toMatchObject({
      status: 422,
      code: 'INVALID_REQUEST',
      detail:
        'The headers: idempotency-key must match pattern "^[!-~]{1,255}$". See GET /openapi.json for the schema.',
    });
    await cloud.client.delete(id);
    expect(await problemOf(await post(cloud, { name: 'x' }, 'k'))).toMatchObject({
      status: 410,
      code: 'SERVER_GONE',
      serverId: id,
      detail: `Server ${id}, created with this Idempotency-Key, was deleted. Use a new key to create a new server.`,
    });
  });

  test('the cloud responds with problem documents for unknown servers and paths, wrong methods, missing API keys, and invalid queries and bodies', async () => {
    await using cloud = await CloudProcess.start();
    const json = { 'content-type': 'application/json' };
    const schema = 'See GET /openapi.json for the schema.';
    for (const [path, init, status, code, detail] of [
      [
        '/servers/x',
        {},
        404,
        'NOT_FOUND',
        'Server x does not exist. It may have been deleted; GET /servers lists the existing servers.',
      ],
      [
        '/nothing',
        {},
        404,
        'NO_SUCH_PATH',
        'No operation exists at this path. GET /openapi.json lists all operations.',
      ],
      [
        '/faults',
        {},
        404,
        'NO_SUCH_PATH',
        'No operation exists at this path. GET /openapi.json lists all operations.',
      ],
      [
        '/servers',
        { method: 'PATCH' },
        405,
        'METHOD_NOT_ALLOWED',
        'Method PATCH is not allowed on this path; allowed: POST, GET, HEAD.',
      ],
      ['/servers?limit=0', {}, 422, 'INVALID_REQUEST', `The query: limit must be >= 1. ${schema}`],
      ['/servers?limit=1001', {}, 422, 'INVALID_REQUEST', `The query: limit must be <= 1000. ${schema}`],
      ['/servers?limit=ten', {}, 422, 'INVALID_REQUEST', `The query: limit must be integer. ${schema}`],
      ['/servers?limit=1&limit=2', {}, 422, 'INVALID_REQUEST', `The query: limit must be integer. ${schema}`],
      [
        '/servers?labels=a',
        {},
        422,
        'INVALID_REQUEST',
        `The query has the unknown property "labels". ${schema}`,
      ],
      [
        '/servers?cursor=eA',
        {},
        422,
        'INVALID_REQUEST',
        `The query: cursor must match pattern "^[0-9]{1,15}$". ${schema}`,
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
        'The body is not valid JSON.',
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
        `The body must have required property 'name'. ${schema}`,
      ],
      [
        '/servers',
        { method: 'POST', headers: json, body: '{"name":5}' },
        422,
        'INVALID_REQUEST',
        `The body: name must be string. ${schema}`,
      ],
      [
        '/servers',
        { method: 'POST', headers: json, body: `{"name":"${'x'.repeat(70_000)}"}` },
        413,
        'BODY_TOO_LARGE',
        'The body is too large; the maximum is 64 KiB.',
      ],
    ] as const)
      expect(await problemOf(await cloud.fetch(path, init)), `${path} ${JSON.stringify(init)}`).toMatchObject(
        {
          status,
          code,
          detail,
        },
      );
  });

  test('the cloud responds with problem documents for invalid HTTP, oversized headers and unknown methods', async () => {
    await using cloud = await CloudProcess.start();
    const raw = async (bytes: string) => {
      const socket = connect(Number(new URL(cloud.url).port), '127.0.0.1').setEncoding('utf8');
      socket.write(bytes);
      return (await socket.toArray()).join('');
    };
    expect(await raw('not HTTP\r\n\r\n')).toMatch(
      /^HTTP\/1.1 400 .*application\/problem\+json.*"The request is not valid HTTP."/s,
    );
    expect(await raw(`GET / HTTP/1.1\r\nHost: x\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`)).toMatch(
      /^HTTP\/1.1 431 .*"code":"HEADERS_TOO_LARGE"/s,
    );
    // These methods are unknown to the HTTP parser, unknown to the framework, or not supported by the path.
    for (const method of ['BREW', 'x-y', 'PROPFIND', 'PURGE', 'TRACE', 'PUT'])
      expect(
        await raw(`${method} /servers?limit=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`),
        method,
      ).toMatch(
        new RegExp(
          `^HTTP/1.1 405 .*\r\nallow: POST, GET, HEAD\r\n.*"Method ${method} is not allowed on this path; allowed: POST, GET, HEAD."`,
          's',
        ),
      );
    expect(await raw('BREW /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).toMatch(
      /^HTTP\/1.1 404 /,
    );
    const disconnecting = connect(Number(new URL(cloud.url).port), '127.0.0.1');
    disconnecting.write(
      `POST /servers HTTP/1.1\r\nHost: x\r\nauthorization: Bearer ${API_KEY}\r\ncontent-length: 10\r\n\r\n{`,
    );
    disconnecting.destroy();
    await once(disconnecting, 'close');
    expect((await cloud.fetch('/healthz')).status).toBe(200);
  });
});

describe('lists', () => {
  test('1,000 servers with their status are returned in one page', async () => {
    await using cloud = await CloudProcess.start();
    const { client } = cloud;
    const names = Array.from({ length: 1_000 }, (_, at) => `vm-${at}`);
    const created = await Promise.all(
      names.map((name) => client.create({ name, labels: { fleet: 'a' } }, name)),
    );
    for (const { id } of created) await cloud.audited('running', id);
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

test('requests for metrics, probes and the OpenAPI document need no API key', async () => {
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
