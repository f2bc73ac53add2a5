import { condition } from '@vmwright/testbed';
import { test as base } from '@vmwright/testbed/vitest';
import { describe, expect, expectTypeOf, vi } from 'vitest';
import { parse } from 'yaml';
import { connect } from '../../test/connect.ts';
import type { Client } from '../client/client.ts';
import { ApiError, InvalidError } from '../client/errors.ts';
import { CustomResourceDefinition, crdOf, crdYaml } from './crd.ts';
import { defineKind } from './define.ts';
import type { ObjectOf } from './kind.ts';
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
  string,
} from './schema/index.ts';
import { sentenceOf } from './schema/problem.ts';
import { validate } from './schema/validate.ts';

const disk = object(
  {
    name: string({ description: 'Name of the disk.', minLength: 1, maxLength: 8 }),
    size: quantity({ description: 'Capacity of the disk.', default: '10Gi' }),
  },
  { description: 'A disk.' },
);

/** A kind that uses every feature of a declaration. */
const Vm = defineKind({
  group: 'kind-test.vmwright.dev',
  kind: 'Vm',
  plural: 'vms',
  singular: 'vm',
  listKind: 'VmList',
  shortNames: ['ktvm'],
  categories: ['kind-test'],
  scope: 'Namespaced',
  annotations: { 'kind-test.vmwright.dev/note': 'generated' },
  conversion: { strategy: 'None' },
  versions: [
    {
      name: 'v1',
      served: true,
      storage: true,
      description: 'A machine.',
      rules: [{ rule: "self.metadata.name != 'forbidden'", message: 'this name is reserved' }],
      spec: object(
        {
          level: optional(
            integer({ description: 'Level of the machine.', minimum: 1, maximum: 10, format: 'int32' }),
          ),
          ratio: optional(
            number({ description: 'Overcommit ratio.', minimum: 0.5, maximum: 2.5, format: 'double' }),
          ),
          on: boolean({ description: 'Whether the machine runs.', default: true }),
          power: literals(['High', 'Low'], { description: 'Power profile.', default: 'Low' }),
          name: optional(string({ description: 'Display name.', maxLength: 4, pattern: '^[a-z]+$' })),
          address: optional(string({ description: 'IPv4 address.', format: 'ipv4' })),
          disks: array(disk, {
            description: 'Disks of the machine.',
            list: 'map',
            keys: ['name'],
            maxItems: 3,
            default: [{ name: 'root' }],
          }),
          tags: optional(array(string(), { description: 'Tags of the machine.', list: 'set', minItems: 1 })),
          steps: optional(array(integer(), { description: 'Boot steps.', list: 'atomic' })),
          labels: optional(
            map(string(), { description: 'Labels of the machine.', maxProperties: 2, atomic: true }),
          ),
          port: optional(intOrString({ description: 'Port number or name.' })),
          parent: optional(nullable(string({ description: 'Parent machine.' }))),
          extra: optional(anything({ description: 'Additional settings.' })),
          template: optional(embedded({ description: 'Template of the object to create.' })),
          range: optional(
            object(
              {
                min: integer({ description: 'Lower bound.' }),
                max: integer({ description: 'Upper bound.' }),
              },
              {
                description: 'A range.',
                atomic: true,
                preserveUnknown: true,
                rules: [
                  {
                    rule: 'self.min <= self.max',
                    messageExpression: "'%d is above %d'.format([self.min, self.max])",
                    reason: 'FieldValueForbidden',
                    fieldPath: '.min',
                  },
                ],
              },
            ),
          ),
          zone: string({
            description: 'Zone of the machine.',
            default: 'a',
            rules: [
              {
                rule: 'oldSelf.orValue(self) == self',
                message: 'the zone cannot change',
                optionalOldSelf: true,
              },
            ],
          }),
          replicas: integer({ description: 'Desired replicas.', default: 1, minimum: 0, format: 'int32' }),
        },
        { description: 'Desired state.' },
      ),
      status: object(
        {
          phase: optional(string({ description: 'Phase of the machine.' })),
          replicas: optional(integer({ description: 'Observed replicas.' })),
          selector: optional(string({ description: 'Label selector of the replicas.' })),
        },
        { description: 'Observed state.' },
      ),
      columns: [
        { name: 'Phase', type: 'string', jsonPath: '.status.phase', description: 'Phase of the machine.' },
        { name: 'Level', type: 'integer', jsonPath: '.spec.level', format: 'int32' },
        { name: 'Zone', type: 'string', jsonPath: '.spec.zone', priority: 1 },
        { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
      ],
      scale: {
        specPath: '.spec.replicas',
        statusPath: '.status.replicas',
        labelSelectorPath: '.status.selector',
      },
      selectableFields: ['.spec.zone'],
    },
    {
      name: 'v1beta1',
      deprecated: 'use v1',
      spec: object(
        { level: optional(integer({ description: 'Level of the machine.' })) },
        { description: 'Desired state in v1beta1.', preserveUnknown: true },
      ),
    },
  ],
});
type Vm = ObjectOf<typeof Vm>;

const test = base
  .extend('connection', { scope: 'file' }, async ({ cluster }, { onCleanup }) => {
    const connection = await connect(cluster.kubeconfig);
    onCleanup(() => connection[Symbol.asyncDispose]());
    return connection;
  })
  // A client of a cluster that serves the kind.
  .extend('client', { scope: 'file' }, async ({ cluster, connection }, { onCleanup }) => {
    onCleanup(() => connection.delete(CustomResourceDefinition, crdOf(Vm).metadata));
    await cluster.apply(await crdYaml(Vm));
    await cluster.waitFor(
      `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/vms.${Vm.group}`,
      (crd) => condition(crd, 'Established') === 'True',
    );
    // The API server itself also watches the CRD, so it may serve the kind a moment after the condition is True.
    const isServed = () => connection.list(Vm).then(() => true);
    await expect.poll(() => isServed().catch(() => false)).toBe(true);
    return connection;
  });

test('the API server establishes a CRD with every feature and stores it unchanged', async ({ client }) => {
  const crd = await client.get(CustomResourceDefinition, crdOf(Vm).metadata);
  const conditions = Object.fromEntries(
    crd.status?.conditions?.map(({ type, status }) => [type, status]) ?? [],
  );
  expect(conditions).toMatchObject({ Established: 'True', NamesAccepted: 'True' });
  expect(conditions).not.toHaveProperty('NonStructuralSchema');
  expect(crd.metadata.annotations).toMatchObject({
    'kind-test.vmwright.dev/note': 'generated',
  });
  expect(crd.spec).toMatchObject(JSON.parse(JSON.stringify(crdOf(Vm).spec)));
  expect(parse(await crdYaml(Vm))).toEqual(JSON.parse(JSON.stringify(crdOf(Vm))));
});

test('a kind in a protected group is accepted only with the approval annotation', async ({ client }) => {
  const Approved = defineKind({
    group: 'kind-test.k8s.io',
    version: 'v1alpha1',
    kind: 'Approved',
    plural: 'approveds',
    scope: 'Cluster',
    annotations: { 'api-approved.kubernetes.io': 'https://github.com/kubernetes/enhancements/pull/1111' },
    spec: object({}),
  });
  const accepted = await client.create(CustomResourceDefinition, crdOf(Approved), { dryRun: true });
  expect(accepted.spec).toMatchObject({ group: 'kind-test.k8s.io', scope: 'Cluster' });
  const { annotations, ...metadata } = crdOf(Approved).metadata;
  const unapproved = client.create(
    CustomResourceDefinition,
    { ...crdOf(Approved), metadata },
    { dryRun: true },
  );
  await expect(unapproved).rejects.toThrow('api-approved.kubernetes.io');
});

test('kubectl explain shows every description', async ({ cluster, client }) => {
  // The short name, because the plural `vms` also means KubeVirt's VirtualMachine, which other test files install.
  const NAME = 'ktvm';
  await client.list(Vm); // fails unless the kind is served
  const explain = async (...args: string[]) => {
    const { stdout } = await cluster.kubectl(['explain', `--api-version=${Vm.group}/v1`, ...args]);
    return stdout.replaceAll(/\s+/g, ' ');
  };
  // The API server publishes the OpenAPI document of a new kind some time after it serves the kind.
  await vi.waitFor(async () => expect(await explain(NAME)).toContain('A machine.'), {
    timeout: 60_000,
    interval: 200,
  });
  const described = [...descriptions(Vm.schema, NAME)];
  expect(described.length).toBeGreaterThan(20);
  for (const [path, description] of described) expect(await explain(path)).toContain(description);
  expect(await explain('--recursive', NAME)).toContain(
    'disks <[]Object> name <string> -required- size <Object>',
  );
});

test('kubectl get accepts the short name and the category and shows the columns; lists can select by a field', async ({
  client,
  cluster,
  namespace,
}) => {
  const metadata = { namespace, name: 'shown' };
  await client.create(Vm, { metadata, spec: { level: 7, zone: 'b' } });
  await client.applyStatus(Vm, metadata, { phase: 'Running' });
  const lines = async (...args: string[]) => {
    const { stdout } = await cluster.kubectl(['-n', namespace, 'get', ...args]);
    return stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.trim().split(/\s+/));
  };
  await vi.waitFor(
    async () => {
      const [head, row] = await lines('ktvm', 'shown');
      expect(head).toEqual(['NAME', 'PHASE', 'LEVEL', 'AGE']);
      expect(row?.slice(0, 3)).toEqual(['shown', 'Running', '7']);
    },
    { timeout: 30_000, interval: 500 },
  );
  expect((await lines('kind-test', '-o', 'wide'))[0]).toEqual(['NAME', 'PHASE', 'LEVEL', 'ZONE', 'AGE']);
  expect((await client.list(Vm, { namespace, fieldSelector: 'spec.zone=b' })).items).toHaveLength(1);
  expect((await client.list(Vm, { namespace, fieldSelector: 'spec.zone=c' })).items).toHaveLength(0);
});

test('kubectl scale works, and the scale subresource has the selector', async ({
  client,
  cluster,
  namespace,
}) => {
  const metadata = { namespace, name: 'scaled' };
  await client.create(Vm, { metadata, spec: {} });
  await cluster.kubectl(['-n', namespace, 'scale', '--replicas=5', `vms.v1.${Vm.group}/scaled`]);
  expect((await client.get(Vm, metadata)).spec.replicas).toBe(5);
  await client.applyStatus(Vm, metadata, { replicas: 3, selector: 'app=scaled' });
  expect((await client.getScale(Vm, metadata)).status).toEqual({ replicas: 3, selector: 'app=scaled' });
});

test('objects are typed, defaults are set, and create ignores the status', async ({ client, namespace }) => {
  const metadata = { namespace, name: 'filled' };
  const created = await client.create(Vm, { metadata, spec: {}, status: { phase: 'made up' } });
  expectTypeOf(created).toEqualTypeOf<Vm>();
  expectTypeOf(created.spec.power).toEqualTypeOf<'High' | 'Low'>();
  expect(created.spec).toEqual({
    on: true,
    power: 'Low',
    zone: 'a',
    replicas: 1,
    disks: [{ name: 'root', size: '10Gi' }],
  });
  expect(created.status).toBeUndefined();
});

test('two versions are served, and the deprecated one causes a warning', async ({
  client,
  cluster,
  namespace,
}) => {
  const metadata = { namespace, name: 'versions' };
  await client.create(Vm.at('v1beta1'), { metadata, spec: { level: 3 } });
  expect((await client.get(Vm, metadata)).spec).toMatchObject({ level: 3, zone: 'a' });
  expect(await client.get(Vm.at('v1beta1'), metadata)).toMatchObject({
    apiVersion: 'kind-test.vmwright.dev/v1beta1',
    spec: { level: 3 },
  });
  const { stderr } = await cluster.kubectl(['-n', namespace, 'get', `vms.v1beta1.${Vm.group}`, 'versions']);
  expect(stderr).toContain('Warning: use v1');
});

describe('API server and validator reject a violation of the schema with the same message', () => {
  test.for<readonly [string, object, string]>([
    [
      'a minimum',
      { level: 0 },
      'spec.level: Invalid value: 0: spec.level in body should be greater than or equal to 1',
    ],
    [
      'a maximum',
      { level: 11 },
      'spec.level: Invalid value: 11: spec.level in body should be less than or equal to 10',
    ],
    [
      'a maximum of a fraction',
      { ratio: 2.75 },
      'spec.ratio: Invalid value: 2.75: spec.ratio in body should be less than or equal to 2.5',
    ],
    [
      'a type',
      { level: 'high' },
      'spec.level: Invalid value: "string": spec.level in body must be of type integer: "string"',
    ],
    ['an enum', { power: 'Full' }, 'spec.power: Unsupported value: "Full": supported values: "High", "Low"'],
    ['a maximum length', { name: 'hello' }, 'spec.name: Too long: may not be more than 4 bytes'],
    [
      'a minimum length',
      { disks: [{ name: '' }] },
      'spec.disks[0].name: Invalid value: "": spec.disks[0].name in body should be at least 1 chars long',
    ],
    [
      'a pattern',
      { name: 'AB' },
      `spec.name: Invalid value: "AB": spec.name in body should match '^[a-z]+$'`,
    ],
    [
      'a format',
      { address: '1.2.3' },
      'spec.address: Invalid value: "1.2.3": spec.address in body must be of type ipv4: "1.2.3"',
    ],
    ['a required field', { disks: [{}] }, 'spec.disks[0].name: Required value'],
    [
      'a maximum number of items',
      { disks: ['a', 'b', 'c', 'd'].map((name) => ({ name })) },
      'spec.disks: Too many: 4: must have at most 3 items',
    ],
    [
      'a minimum number of items',
      { tags: [] },
      'spec.tags: Invalid value: 0: spec.tags in body should have at least 1 items',
    ],
    [
      'a duplicate key of a list map',
      { disks: [{ name: 'a' }, { name: 'a' }] },
      'spec.disks[1]: Duplicate value: {"name":"a"}',
    ],
    ['a duplicate item of a set', { tags: ['a', 'a'] }, 'spec.tags[1]: Duplicate value: "a"'],
    [
      'a maximum number of keys',
      { labels: { a: '', b: '', c: '' } },
      'spec.labels: Too many: 3: must have at most 2 items',
    ],
    [
      'int-or-string',
      { port: true },
      'spec.port: Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean"',
    ],
    ['an embedded object', { template: { kind: 'Pod' } }, 'spec.template.apiVersion: Required value'],
  ])('%s', async ([, spec, message], { client, namespace }) => {
    expect(await rejection(client, namespace, spec)).toContain(message);
    expect(validate(Vm.schema, { spec }).map(sentenceOf)).toEqual([message]);
  });
});

describe('CEL rules', () => {
  test('a violated CEL rule of a field is reported with its fieldPath and messageExpression', async ({
    client,
    namespace,
  }) => {
    expect(await rejection(client, namespace, { range: { min: 3, max: 2 } })).toEqual([
      'spec.range.min: Forbidden: 3 is above 2',
    ]);
  });

  test('a violated CEL rule of the whole object is reported with its message', async ({
    client,
    namespace,
  }) => {
    expect(await rejection(client, namespace, {}, 'forbidden')).toEqual([
      '<nil>: Invalid value: this name is reserved',
    ]);
  });

  test('an update that violates a CEL transition rule is rejected with the message of the rule', async ({
    client,
    namespace,
  }) => {
    const metadata = { namespace, name: 'moved' };
    await client.create(Vm, { metadata, spec: { zone: 'a' } });
    const moved = client.mergePatch(Vm, metadata, { spec: { zone: 'b' } });
    await expect(moved).rejects.toThrow('the zone cannot change');
  });
});

/** Returns the causes with which the API server rejects a spec. */
async function rejection(
  client: Client,
  namespace: string,
  spec: object,
  name = 'rejected',
): Promise<string[]> {
  const response = client.create(Vm, { metadata: { namespace, name }, spec }, { dryRun: true });
  const error = await response.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(InvalidError);
  return error instanceof ApiError ? error.causes.map(({ field, message }) => `${field}: ${message}`) : [];
}

/** Yields the descriptions of a schema and its fields, by path. */
function* descriptions(schema: Schema, path: string): Generator<readonly [string, string]> {
  const { description, items, properties = {} } = schema;
  if (description !== undefined) yield [path, description];
  if (items !== undefined) yield* descriptions(items, path);
  for (const [name, field] of Object.entries(properties)) yield* descriptions(field, `${path}.${name}`);
}
