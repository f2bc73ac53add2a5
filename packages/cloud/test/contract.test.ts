import { Random } from '@vmwright/testbed';
import { describe, expect, test } from 'vitest';
import { CloudProcess } from './cloud-process.ts';
import { type DocumentedOperation, list, OpenApi, record } from './openapi.ts';

/** Number of valid and of invalid requests per operation. */
const VALID_REQUESTS = 60;
const INVALID_REQUESTS = 200;

async function start(args: readonly string[]) {
  const prohibited = ['root  the superuser’s', 'web-*'];
  const cloud = await CloudProcess.start({ args, prohibited });
  const response = await cloud.fetch('/openapi.json');
  return {
    cloud,
    api: new OpenApi(await response.json()),
    [Symbol.asyncDispose]: () => cloud.kill(),
  };
}

interface Sent {
  readonly path: string;
  readonly init: RequestInit;
}

type Generate = (schema: Readonly<Record<string, unknown>>, name: string) => unknown;

/** Builds a request for an operation from generated parameters and body. */
function requestFor(
  { method, path, parameters, body }: DocumentedOperation,
  random: Random,
  generate: Generate,
): Sent {
  const query = new URLSearchParams();
  const headers = new Headers();
  let filledPath = path;
  for (const { name, in: place, schema } of parameters) {
    if (place !== 'path' && random.chance(0.5)) continue;
    const value = generate(schema, name);
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    if (place === 'path')
      filledPath = filledPath.replace(`{${name}}`, encodeURIComponent(text.toWellFormed()));
    else if (place === 'query')
      for (const each of Array.isArray(value) ? value : [text]) query.append(name, String(each));
    else if (/^[\x20-\x7e]*$/.test(text)) headers.set(name, text);
  }
  const init: RequestInit = { method, headers };
  if (body !== undefined) {
    headers.set('content-type', 'application/json');
    init.body = JSON.stringify(generate(body, 'body'));
  }
  return { path: query.size === 0 ? filledPath : `${filledPath}?${query}`, init };
}

describe.each([
  ['without fault injection', []],
  ['with fault injection', ['--enable-faults']],
] as const)('OpenAPI document, %s', (_, args) => {
  test('the OpenAPI document is OpenAPI 3.1 with unique operation ids and without dangling references', async () => {
    await using env = await start(args);
    const { api } = env;
    expect(api.document.openapi).toBe('3.1.0');
    const ids = api.operations().map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.includes('setFaults')).toBe(args.length > 0);
    const text = JSON.stringify(api.document);
    const references = [...text.matchAll(/"\$ref":"([^"]+)"/g)].map(([, $ref]) => $ref);
    expect(references.length).toBeGreaterThan(20);
    for (const $ref of references) expect(record(api.resolve({ $ref })), $ref).not.toEqual({});
    const named = Object.keys(record(record(api.document.components).schemas));
    expect(named.filter((name) => !text.includes(`schemas/${name}"`))).toEqual([]);
  });

  test('the OpenAPI document has patterns that other languages can compile', async () => {
    await using env = await start(args);
    const patterns = [...patternsIn(env.api.document)];
    expect(patterns.length).toBeGreaterThan(5);
    for (const pattern of patterns) {
      // Patterns may use only syntax that RE2 (Go, Rust), Java, .NET, Python and ECMAScript share.
      expect(pattern, 'Unicode classes, back references and shorthands').not.toMatch(
        /\\[pPkKdDwWsSbBuQEAzZG1-9]/,
      );
      expect(pattern, 'look-around, named groups, flags').not.toMatch(/\(\?[^:]/);
      expect(pattern, 'possessive and lazy quantifiers').not.toMatch(/[*+?}][+?]/);
      expect(() => new RegExp(pattern)).not.toThrow(); // must also compile without the flag u
    }
  });

  test('the OpenAPI document describes exactly the accepted cursors', async () => {
    await using env = await start(args);
    const { cloud, api } = env;
    const schema = record(record(record(api.document.components).schemas).Cursor);
    const pattern = new RegExp(String(schema.pattern));
    for (const cursor of [
      '0',
      '7',
      '000',
      '999999999999999',
      '9999999999999999',
      '',
      'MTA',
      'x',
      '-1',
      '1.5',
      ' 1',
      '١',
    ]) {
      const { status } = await cloud.fetch(`/servers?cursor=${encodeURIComponent(cursor)}`);
      expect(status === 200, `"${cursor}" gets ${status}`).toBe(pattern.test(cursor));
    }
  });

  test('the OpenAPI document describes every response, and no response is a 500', {
    timeout: 120_000,
  }, async () => {
    await using env = await start(args);
    const { api, cloud } = env;
    const random = new Random(20_260_101);
    const seen = new Set<string>();
    const violations: string[] = [];
    const ids: string[] = ['6f0c2b0a-0d53-4f6e-8f0a-8a1f8f1f0001'];
    const send = async (operation: DocumentedOperation, { path, init }: Sent) => {
      const response = await cloud.fetch(path, init);
      seen.add(`${operation.id} ${response.status}`);
      if (operation.id === 'createServer' && response.ok)
        ids.push(String(record(await response.clone().json()).id));
      for (const violation of await api.check(operation, response))
        violations.push(`${violation}\n  after ${init.method} ${path} ${init.body ?? ''}`);
    };
    // The operations of /faults come last, because injected faults change the other responses.
    const operations = api.operations().filter(({ path }) => path !== '/faults');
    const faultOperations = api.operations().filter(({ path }) => path === '/faults');
    for (const kind of [...Array(VALID_REQUESTS).fill('valid'), ...Array(INVALID_REQUESTS).fill('invalid')]) {
      for (const operation of [...operations, ...faultOperations]) {
        const generate: Generate = (schema, name) => {
          if (name === 'id' && random.chance(0.7)) return random.pick(ids);
          const isValid = kind === 'valid' || random.chance(0.5);
          return isValid ? api.valid(schema, random) : api.invalid(schema, random);
        };
        await send(operation, requestFor(operation, random, generate));
        if (operation.id === 'setFaults') await cloud.fetch('/faults', { method: 'DELETE' });
      }
    }
    // Requests that the schemas cannot describe: other content types, malformed bodies and wrong API keys.
    for (const operation of [...operations, ...faultOperations]) {
      const { path, init } = requestFor(operation, random, (schema) => api.valid(schema, random));
      const sendWith = (more: RequestInit) => send(operation, { path, init: { ...init, ...more } });
      const headers = Object.fromEntries(new Headers(init.headers));
      await sendWith({ headers: { ...headers, authorization: 'Bearer wrong' } });
      if (init.method === 'GET') continue;
      for (const [type, body] of [
        ['application/json', '{'],
        ['application/json', ''],
        ['application/json', '{"__proto__":{"a":1}}'],
        ['application/json', `{"name":"${'x'.repeat(70_000)}"}`],
        ['text/plain', 'name=x'],
        ['application/x-www-form-urlencoded', 'name=x'],
        ['application/json; charset=utf-16', '"x"'],
      ] as const)
        await sendWith({ headers: { ...headers, 'content-type': type }, body });
    }
    for (const operation of operations.filter(({ path }) => path.includes('{'))) {
      for (const part of ['x'.repeat(2_000), 'x'.repeat(300), '%ff'])
        await send(operation, {
          path: operation.path.replace(/\{\w+\}/, part),
          init: { method: operation.method },
        });
    }
    // Sends one idempotency key twice, and once more after the server that it created was deleted.
    const create = operations.find(({ id }) => id === 'createServer');
    if (create === undefined) throw new Error('createServer is missing');
    const headers = { 'content-type': 'application/json', 'idempotency-key': 'once' };
    const once = { path: '/servers', init: { method: 'POST', headers, body: '{"name":"once"}' } };
    await send(create, once);
    await send(create, once);
    await cloud.client.delete(ids.at(-1) ?? '');
    await send(create, once);

    expect(violations).toEqual([]);
    // The requests above produced every documented response, except those for overload (429, 503) and server errors.
    const documented = api
      .operations()
      .flatMap(({ id, responses }) => Object.keys(responses).map((code) => `${id} ${code}`));
    const unseen = documented.filter((each) => !seen.has(each) && !/ (429|500|503|default)$/.test(each));
    expect(unseen).toEqual([]);
    expect(cloud.log).not.toContain('"level":"error"');
    expect(list(api.document.security)).toEqual([{ apiKey: [] }]);
  });
});

function* patternsIn(value: unknown): Generator<string, void, undefined> {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, each] of Object.entries(value)) {
    if (key === 'pattern' && typeof each === 'string') yield each;
    else yield* patternsIn(each);
  }
}
