import { Random } from '@vmwright/testbed';
import { describe, expect, test } from 'vitest';
import { CloudProcess } from './cloud-process.ts';
import { type DocumentedOperation, list, OpenApi, record } from './openapi.ts';

/** How many requests of each kind for each operation. */
const VALID = 60;
const INVALID = 200;

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

type Make = (schema: Readonly<Record<string, unknown>>, name: string) => unknown;

/** A request whose parts are made by `make`, as a program would send them. */
function requestFor(
  { method, path, parameters, body }: DocumentedOperation,
  random: Random,
  make: Make,
): Sent {
  const query = new URLSearchParams();
  const headers = new Headers();
  let filled = path;
  for (const { name, in: place, schema } of parameters) {
    if (place !== 'path' && random.chance(0.5)) continue;
    const value = make(schema, name);
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    if (place === 'path') filled = filled.replace(`{${name}}`, encodeURIComponent(text.toWellFormed()));
    else if (place === 'query')
      for (const each of Array.isArray(value) ? value : [text]) query.append(name, String(each));
    else if (/^[\x20-\x7e]*$/.test(text)) headers.set(name, text);
  }
  const init: RequestInit = { method, headers };
  if (body !== undefined) {
    headers.set('content-type', 'application/json');
    init.body = JSON.stringify(make(body, 'body'));
  }
  return { path: query.size === 0 ? filled : `${filled}?${query}`, init };
}

describe.each([
  ['without faults', []],
  ['with the routes for faults', ['--enable-faults']],
] as const)('the document of the API, %s', (_, args) => {
  test('is OpenAPI 3.1, names every operation once, and refers to what is there', async () => {
    await using all = await start(args);
    const { api } = all;
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

  test('has patterns that generators for other languages understand', async () => {
    await using all = await start(args);
    const patterns = [...patternsIn(all.api.document)];
    expect(patterns.length).toBeGreaterThan(5);
    for (const pattern of patterns) {
      // What RE2 (Go, Rust), Java, .NET, Python and ECMAScript read alike.
      expect(pattern, 'Unicode classes, back references and shorthands').not.toMatch(
        /\\[pPkKdDwWsSbBuQEAzZG1-9]/,
      );
      expect(pattern, 'look-around, named groups, flags').not.toMatch(/\(\?[^:]/);
      expect(pattern, 'possessive and lazy quantifiers').not.toMatch(/[*+?}][+?]/);
      expect(() => new RegExp(pattern)).not.toThrow(); // without the flag u, too
    }
  });

  test('describes exactly the cursors that are accepted', async () => {
    await using all = await start(args);
    const { cloud, api } = all;
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
      expect(status === 200, `"${cursor}" is answered by ${status}`).toBe(pattern.test(cursor));
    }
  });

  test('is kept by every answer, to valid requests and to others, and 500 is none', {
    timeout: 120_000,
  }, async () => {
    await using all = await start(args);
    const { api, cloud } = all;
    const random = new Random(20_260_101);
    const seen = new Set<string>();
    const faults: string[] = [];
    const ids: string[] = ['6f0c2b0a-0d53-4f6e-8f0a-8a1f8f1f0001'];
    const send = async (operation: DocumentedOperation, { path, init }: Sent) => {
      const response = await cloud.fetch(path, init);
      seen.add(`${operation.id} ${response.status}`);
      if (operation.id === 'createServer' && response.ok)
        ids.push(String(record(await response.clone().json()).id));
      for (const fault of await api.faultsOf(operation, response))
        faults.push(`${fault}\n  after ${init.method} ${path} ${init.body ?? ''}`);
    };
    // Those of faults last: with faults in force the API is not what it should be.
    const operations = api.operations().filter(({ path }) => path !== '/faults');
    const ofFaults = api.operations().filter(({ path }) => path === '/faults');
    for (const kind of [...Array(VALID).fill('valid'), ...Array(INVALID).fill('invalid')]) {
      for (const operation of [...operations, ...ofFaults]) {
        const make: Make = (schema, name) => {
          if (name === 'id' && random.chance(0.7)) return random.pick(ids);
          const isValid = kind === 'valid' || random.chance(0.5);
          return isValid ? api.valid(schema, random) : api.invalid(schema, random);
        };
        await send(operation, requestFor(operation, random, make));
        if (operation.id === 'setFaults') await cloud.fetch('/faults', { method: 'DELETE' });
      }
    }
    // What no schema says: other bodies, other keys.
    for (const operation of [...operations, ...ofFaults]) {
      const { path, init } = requestFor(operation, random, (schema) => api.valid(schema, random));
      const strange = (more: RequestInit) => send(operation, { path, init: { ...init, ...more } });
      const headers = Object.fromEntries(new Headers(init.headers));
      await strange({ headers: { ...headers, authorization: 'Bearer wrong' } });
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
        await strange({ headers: { ...headers, 'content-type': type }, body });
    }
    for (const operation of operations.filter(({ path }) => path.includes('{'))) {
      for (const part of ['x'.repeat(2_000), 'x'.repeat(300), '%ff'])
        await send(operation, {
          path: operation.path.replace(/\{\w+\}/, part),
          init: { method: operation.method },
        });
    }
    // A key again, and once more after its server was deleted.
    const create = operations.find(({ id }) => id === 'createServer');
    if (create === undefined) throw new Error('there is no createServer');
    const headers = { 'content-type': 'application/json', 'idempotency-key': 'once' };
    const once = { path: '/servers', init: { method: 'POST', headers, body: '{"name":"once"}' } };
    await send(create, once);
    await send(create, once);
    await cloud.client.delete(ids.at(-1) ?? '');
    await send(create, once);

    expect(faults).toEqual([]);
    // The generator bites: each answer that the document has was given, but those that need trouble.
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
