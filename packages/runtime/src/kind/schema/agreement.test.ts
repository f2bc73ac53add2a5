import { condition } from '@vmwright/testbed';
import { test } from '@vmwright/testbed/vitest';
import fc, { type Arbitrary } from 'fast-check';
import { expect } from 'vitest';
import { connect } from '../../../test/connect.ts';
import type { Client } from '../../client/client.ts';
import { ApiError } from '../../client/errors.ts';
import { CustomResourceDefinition, crdOf, crdYaml } from '../crd.ts';
import { defineKind } from '../define.ts';
import type { Kind } from '../kind.ts';
import type { KubeObject } from '../object.ts';
import { type Format, isFormat } from './format.ts';
import {
  anything,
  array,
  boolean,
  embedded,
  integer,
  intOrString,
  literals,
  map,
  nullable,
  number,
  object,
  optional,
  quantity,
  type Schema,
  sentenceOf,
  string,
} from './index.ts';
import { validate } from './validate.ts';

const SCHEMAS = 60;
const VALUES = 800;

/*
 * All schemas of a run are fields of one CRD, so that the test waits for only one CRD to become Established. Shrinking
 * also sends requests to the API server. The error message contains the shrunk failure and the seed.
 */
test('validator and API server accept and reject the same values, with the same messages', async ({
  cluster,
  namespace,
}) => {
  await using client = await connect(cluster.kubeconfig);
  const seed = Date.now() % 2 ** 31;
  const schemas = fc.sample(anySchema(2), { seed, numRuns: SCHEMAS });
  const Sample = defineKind({
    group: 'agreement.kind-test.vmwright.dev',
    version: 'v1',
    kind: 'Sample',
    plural: 'samples',
    spec: object(Object.fromEntries(schemas.map((schema, index) => [`f${index}`, optional(schema)]))),
  });
  await cluster.apply(await crdYaml(Sample));
  await using _ = {
    [Symbol.asyncDispose]: () => client.delete(CustomResourceDefinition, crdOf(Sample).metadata),
  };
  await cluster.waitFor(
    `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/samples.${Sample.group}`,
    (crd) => condition(crd, 'Established') === 'True',
  );
  // The API server itself also watches the CRD, so it may serve the kind a moment after the condition is True.
  const isServed = () => client.list(Sample, { namespace }).then(() => true);
  await expect.poll(() => isServed().catch(() => false)).toBe(true);

  const pair = fc
    .nat(SCHEMAS - 1)
    .chain((index) => valueFor(schemas[index] ?? {}).map((value) => ({ index, value })));
  const counts = { accepted: 0, rejected: 0 };
  await fc.assert(
    fc.asyncProperty(pair, async ({ index, value }) => {
      const spec = { [`f${index}`]: value };
      const expected = await problemsOnServer(client, Sample, namespace, spec);
      const actual = validate(Sample.schema, { spec }).map(sentenceOf);
      counts[actual.length === 0 ? 'accepted' : 'rejected'] += 1;
      expect(actual.toSorted(), `${JSON.stringify(value)} with ${JSON.stringify(schemas[index])}`).toEqual(
        expected.toSorted(),
      );
    }),
    { seed, numRuns: VALUES },
  );
  // The generated values must include enough accepted and enough rejected ones.
  expect(counts.accepted).toBeGreaterThan(VALUES / 5);
  expect(counts.rejected).toBeGreaterThan(VALUES / 5);
});

/** Returns the causes with which the API server rejects a spec. */
async function problemsOnServer(
  client: Client,
  kind: Kind,
  namespace: string,
  spec: object,
): Promise<readonly string[]> {
  const draft: KubeObject & { readonly spec: object } = { metadata: { namespace, name: 'sample' }, spec };
  try {
    await client.create(kind, draft, { dryRun: true });
    return [];
  } catch (error) {
    if (!(error instanceof ApiError) || (error.status !== 422 && error.status !== 400)) throw error;
    const messages = error.causes.map(({ field, message }) => `${field}: ${message}`);
    return messages.length > 0 ? messages : [error.message];
  }
}

/** Valid and nearly valid strings of each format. */
const formats: Readonly<Record<Format, readonly string[]>> = {
  byte: ['aGk=', 'aGVsbG8h', 'YQ=='],
  cidr: ['10.0.0.0/8', '2001:db8::/32', '010.1.1.1/032', '::ffff:1.2.3.4/96'],
  date: ['2024-02-29', '2023-12-31', '2000-02-29', '1900-02-29'],
  'date-time': ['2024-02-29T23:59:59Z', '2024-01-01t00:00:00.123456+01:00', '2024-01-01T24:00:00Z'],
  duration: ['1h30m', '2 days', '-1.5s', '0', '3μs', '99999999999999999999s', '5 fortnights', '.5h', '1.m'],
  ipv4: ['192.0.2.1', '010.0.0.1', '::ffff:1.2.3.4', '::00001:1.2.3.4', '256.1.1.1'],
  ipv6: ['2001:db8::1', '::', '1:2:3:4:5:6:7:8', '::ffff:1.2.3.4', '1:2:3:4:5:6:7::', 'fe80::1%eth0'],
  mac: ['00:50:56:01:02:03', '00-50-56-01-02-03', '0050.5601.0203', '00:50:56:01:02:03:04:05'],
  uuid: ['123e4567-e89b-12d3-a456-426614174000', '123E4567E89B12D3A456426614174000'],
};
const quantities = ['1', '500m', '16Gi', '1e3', '-.5', '1.', '+1Ki', '1KiB', '1e', '', 'Gi', '1E-2'];

const text = fc.string({ unit: fc.constantFrom('a', 'b', 'x', '1', 'é', '😀'), maxLength: 5 });
const half = fc.integer({ min: -8, max: 8 }).map((twice) => twice / 2);
const key = fc.constantFrom('a', 'b', 'c', 'd');

/** A record in which each field is optional. */
function some<T>(options: { [K in keyof T]: Arbitrary<T[K]> }) {
  return fc.record(options, { requiredKeys: [] });
}

const bounds = fc.tuple(half, fc.nat(6), fc.nat(3)).map(([minimum, width, sides]) => ({
  ...(sides & 1 && { minimum }),
  ...(sides & 2 && { maximum: minimum + width / 2 }),
}));

const plain: Arbitrary<Schema> = fc.oneof(
  some({
    minLength: fc.nat(2),
    maxLength: fc.integer({ min: 2, max: 6 }),
    pattern: fc.constantFrom('^[a-z]+$', 'a|b', '^.{2}$', String.raw`^\d*$`, '[^x]$', ''),
  }).map(string),
  fc.constantFrom(...formatNames()).map((format) => string({ format })),
  bounds.map(integer),
  bounds.map(number),
  fc.constantFrom(boolean(), literals(['a', 'b']), literals(['x'])),
);

const scalar: Arbitrary<Schema> = fc.oneof(
  { weight: 5, arbitrary: plain },
  { weight: 1, arbitrary: fc.constantFrom(intOrString(), quantity()) },
  {
    weight: 1,
    arbitrary: plain.filter((schema) => schema.enum === undefined).map((schema) => nullable(schema)),
  },
);

function anySchema(depth: number): Arbitrary<Schema> {
  const leaf = withDefault(scalar);
  if (depth === 0) return leaf;
  const inner = anySchema(depth - 1);
  const sizes = { minItems: fc.nat(2), maxItems: fc.integer({ min: 1, max: 3 }) };
  const item = fc.record({ a: plain, b: withDefault(plain, 1), c: inner.map(optional) });
  return fc.oneof(
    leaf,
    fc.dictionary(key, fc.oneof(inner, inner.map(optional)), { minKeys: 1 }).map((fields) => object(fields)),
    inner.map((field) => object({ a: field }, { preserveUnknown: true })),
    inner.map((field) => nullable(object({ a: optional(field) }))),
    fc.tuple(inner, some(sizes)).map(([items, options]) => array(items, options)),
    fc.tuple(plain, some(sizes)).map(([items, options]) => array(items, { ...options, list: 'set' })),
    item.map((fields) => array(object(fields), { list: 'map', keys: ['a'] })),
    item
      .filter(({ b }) => b.default !== undefined)
      .map((fields) => array(object(fields), { list: 'map', keys: ['a', 'b'] })),
    fc
      .tuple(inner, some({ minProperties: fc.nat(2), maxProperties: fc.integer({ min: 1, max: 3 }) }))
      .map(([values, options]) => map(values, options)),
    fc.constantFrom(anything(), embedded()),
  );
}

/** Adds a default to some schemas, if a valid one is found: the API server rejects invalid defaults. */
function withDefault(schemas: Arbitrary<Schema>, oneIn = 3): Arbitrary<Schema> {
  return fc.tuple(schemas, fc.nat()).map(([schema, dice]) => {
    const fits = (value: unknown) => value !== null && validate(schema, value).length === 0;
    const value =
      dice % oneIn === 0 ? fc.sample(valueFor(schema), { seed: dice, numRuns: 20 }).find(fits) : undefined;
    return value === undefined ? schema : { ...schema, default: value };
  });
}

/** Mostly plausible values for the schema, sometimes arbitrary ones. */
function valueFor(schema: Schema): Arbitrary<unknown> {
  return fc.oneof({ weight: 12, arbitrary: plausible(schema) }, { weight: 1, arbitrary: anyValue(schema) });
}

function plausible(schema: Schema): Arbitrary<unknown> {
  const { type, format, items, properties, additionalProperties } = schema;
  if (schema.enum) return fc.constantFrom(...schema.enum, 'b', 'c');
  if (schema['x-kubernetes-int-or-string']) return fc.oneof(fc.constantFrom(...quantities), fc.integer());
  if (schema['x-kubernetes-embedded-resource'])
    return some({
      apiVersion: fc.constantFrom('v1', 'apps/v1', ''),
      kind: fc.constantFrom('Pod', 'ConfigMap'),
      metadata: fc.constantFrom({}, { name: 'x' }),
      rest: fc.integer(),
    });
  if (items) return fc.array(valueFor(items), { maxLength: 4 });
  if (additionalProperties) return fc.dictionary(key, valueFor(additionalProperties));
  if (properties) {
    const fields = Object.entries(properties).map(([name, field]) => [name, valueFor(field)] as const);
    return fc
      .tuple(some(Object.fromEntries(fields)), some({ unknown: fc.boolean() }))
      .map(([known, unknown]) => ({ ...known, ...unknown }));
  }
  if (type === 'string')
    return format && isFormat(format) ? nearly(fc.constantFrom(...formats[format])) : text;
  if (type === 'integer' || type === 'number')
    return fc.oneof(
      half,
      fc.integer({ min: -5, max: 5 }),
      fc.constantFrom(2 ** 53, 2 ** 63, -(2 ** 63), 1e21),
    );
  return type === 'boolean' ? fc.boolean() : fc.jsonValue({ maxDepth: 2 });
}

function anyValue(schema: Schema): Arbitrary<unknown> {
  // For a string with a format, the API server also accepts an array, but the validator does not.
  const lax = schema.type === 'string' && schema.format !== undefined;
  return fc.constantFrom(null, true, 1, 1.5, 'a', {}, { a: 1 }, ...(lax ? [] : [[], ['a']]));
}

/** Strings with at most one character removed, inserted or replaced. */
function nearly(strings: Arbitrary<string>): Arbitrary<string> {
  const scrap = fc.constantFrom('', '', '0', '9', ':', '.', '-', '/', 'T', 'Z', 'f', 'g', ' ', 'é');
  return fc
    .tuple(strings, fc.nat(40), fc.nat(1), scrap)
    .map(([whole, at, cut, put]) =>
      at < whole.length ? whole.slice(0, at) + put + whole.slice(at + cut) : whole,
    );
}

function formatNames(): Format[] {
  return Object.keys(formats).filter(isFormat);
}
