import { nodeWorld, type World } from '@vmwright/core';
import { condition, field, freePort } from '@vmwright/testbed';
import { test as base } from '@vmwright/testbed/vitest';
import { expect } from 'vitest';
import { listOf, manifestsFor, replica, waitForTrust, webhookRoles } from '../../test/webhook-manager.ts';
import { crdOf } from '../kind/crd.ts';
import { defineKind } from '../kind/define.ts';
import type { ObjectOf } from '../kind/kind.ts';
import { integer, object, optional, string } from '../kind/schema/index.ts';
import { type AdmissionRules, admission } from './admission.ts';
import { type ConversionRules, conversion } from './conversion.ts';
import { timeoutOf } from './timeout.ts';
import { allow, deny } from './verdict.ts';

const NAME = 'webhook-test';
const GROUP = 'webhook-test.vmwright.dev';
const COLOR = `${GROUP}/color`;
const REVIEW_SECONDS = 29;

const versions = [
  {
    name: 'v1',
    storage: true,
    spec: object({ width: integer(), height: integer(), color: optional(string()) }),
    status: object({ seen: optional(string()) }),
  },
  { name: 'v1beta1', spec: object({ size: string() }) },
] as const;
const Widget = defineKind({ group: GROUP, kind: 'Widget', plural: 'widgets', versions });
type Widget = ObjectOf<typeof Widget>;

/** Requests that the validation handler received. */
const seen: {
  name: string;
  operation: string;
  dryRun: boolean;
  user: string;
  before: number | undefined;
  sub: string;
}[] = [];
const hanging = new Set<AbortSignal>();
/** Timeout callbacks of the reviews. Calling them ends the reviews in progress as if their timeout had expired. */
const expireReviews = new Set<() => void>();
const world: World = {
  ...nodeWorld,
  after: (ms, callback) => {
    if (ms === timeoutOf(`${REVIEW_SECONDS}s`)) expireReviews.add(callback);
    return nodeWorld.after(ms, callback);
  },
};

const rules: AdmissionRules<Widget> = {
  operations: ['CREATE', 'UPDATE', 'DELETE'],
  timeoutSeconds: REVIEW_SECONDS,
  mutate: (widget, { namespace, user }) => {
    if (widget.spec.color === 'none') return deny('a widget must have a color', { code: 422 });
    const { metadata, spec } = widget;
    const annotations = { ...metadata.annotations, [`${GROUP}/by`]: `${user.username} in ${namespace}` };
    return {
      ...widget,
      metadata: { ...metadata, annotations },
      spec: { ...spec, color: spec.color ?? 'blue' },
    };
  },
  validate: async (widget, request) => {
    const { name } = widget.metadata;
    const { operation, dryRun, user, before, subresource: sub, signal } = request;
    seen.push({ name, operation, dryRun, user: user.username, before: before?.spec.width, sub });
    if (name === 'throws') throw new Error('the password is hunter2');
    if (name === 'hangs') {
      hanging.add(signal);
      for (const expire of expireReviews) expire();
      await new Promise(() => undefined);
    }
    if (operation === 'DELETE')
      return name === 'kept' && !dryRun ? deny('the widget "kept" must not be deleted') : allow();
    if (widget.spec.width > 100)
      return deny('the width is more than 100; set at most 100', {
        causes: [{ field: 'spec.width', reason: 'FieldValueInvalid', message: 'more than 100' }],
      });
    return widget.spec.color === 'beige' ? allow('beige is deprecated', 'use blue instead') : allow();
  },
};

const conversions: ConversionRules<typeof versions> = {
  v1beta1: {
    toStored: ({ spec, metadata }) => {
      const [width = Number.NaN, height = Number.NaN] = spec.size.split('x').map(Number);
      if (Number.isNaN(width + height)) throw new Error(`the size must have the form 3x4, got ${spec.size}`);
      const { [COLOR]: color, ...annotations } = metadata.annotations ?? {};
      return { metadata: { annotations }, spec: { width, height, ...(color !== undefined && { color }) } };
    },
    fromStored: ({ spec, metadata }) => {
      const { width, height, color } = spec;
      const annotations = { ...metadata.annotations, ...(color !== undefined && { [COLOR]: color }) };
      return { metadata: { annotations }, spec: { size: `${width}x${height}` } };
    },
  },
};

const CONFIGURATIONS = ['validating', 'mutating'].map(
  (type) => `/apis/admissionregistration.k8s.io/v1/${type}webhookconfigurations/${NAME}`,
);
const CRD = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.${GROUP}`;

const test = base
  .extend('port', { scope: 'file' }, () => freePort())
  // Kubeconfig of a service account with the minimal permissions of webhooks.
  .extend('kubeconfig', { scope: 'file' }, async ({ cluster, namespace, port }, { onCleanup }) => {
    const roles = webhookRoles(NAME, namespace, [crdOf(Widget).metadata.name]);
    const manifests = manifestsFor(NAME, port, [admission(Widget, rules), conversion(Widget, conversions)]);
    onCleanup(async () => {
      for (const path of [...CONFIGURATIONS, CRD]) await cluster.api.delete(path);
      for (const kind of ['clusterrole', 'clusterrolebinding']) await cluster.kubectl(['delete', kind, NAME]);
    });
    await cluster.apply(listOf([...roles, ...manifests]));
    await cluster.waitFor(CRD, (crd) => condition(crd, 'Established') === 'True');
    return cluster.kubeconfigFor({ namespace, name: 'default' });
  })
  .extend('replica', { scope: 'file' }, async ({ cluster, kubeconfig, namespace, port }, { onCleanup }) => {
    const options = { name: NAME, namespace, port, status: { port: 0, host: '127.0.0.1' }, world };
    const started = await replica(kubeconfig, options, (manager) => {
      manager.admit(Widget, rules);
      manager.convert(Widget, conversions);
    });
    onCleanup(() => started[Symbol.asyncDispose]());
    await waitForTrust(cluster, [...CONFIGURATIONS, CRD]);
    // The API server observes the configurations through watches: wait until it calls all three webhooks.
    const probe = {
      apiVersion: `${GROUP}/v1beta1`,
      kind: 'Widget',
      metadata: { name: 'probe' },
      spec: { size: '1x1' },
    };
    const create = ['-n', namespace, 'create', '--dry-run=server', '-o', 'json', '-f', '-'];
    const isCalled = async () => {
      const { stdout } = await cluster.tryKubectl(create, { input: JSON.stringify(probe) });
      return stdout.includes(`"${GROUP}/by"`) && seen.some(({ name }) => name === 'probe');
    };
    await expect.poll(isCalled).toBe(true);
    return started;
  })
  .extend('kubectl', { scope: 'file' }, ({ cluster, namespace, replica: _ }) => {
    const run = (args: readonly string[], input?: object) =>
      cluster.tryKubectl(['-n', namespace, ...args], input && { input: JSON.stringify(input) });
    const create = (name: string, spec: object, more: readonly string[] = [], version = 'v1') =>
      run(['create', '-f', '-', ...more], {
        apiVersion: `${GROUP}/${version}`,
        kind: 'Widget',
        metadata: { name },
        spec,
      });
    return { run, create };
  });

test('a denied object is not stored, and kubectl shows the message of the denial', async ({ kubectl }) => {
  const { stderr } = await kubectl.create('wide', { width: 101, height: 1 });
  expect(stderr.trim()).toBe(
    `Error from server (Forbidden): error when creating "STDIN": admission webhook "validate.v1.widgets.${GROUP}" ` +
      'denied the request: the width is more than 100; set at most 100',
  );
  expect((await kubectl.run(['get', 'widget', 'wide'])).stderr).toContain('NotFound');
  expect((await kubectl.create('bare', { width: 1, height: 1, color: 'none' })).stderr).toContain(
    'a widget must have a color',
  );
});

test('a mutation sets defaults and an annotation with a slash in its name', async ({
  kubectl,
  namespace,
}) => {
  await kubectl.create('plain', { width: 1, height: 2 });
  const { stdout } = await kubectl.run(['get', 'widget', 'plain', '-o', 'json']);
  const stored = JSON.parse(stdout);
  expect(stored.spec).toEqual({ width: 1, height: 2, color: 'blue' });
  expect(stored.metadata.annotations[`${GROUP}/by`]).toMatch(new RegExp(`^\\S+ in ${namespace}$`));
});

test('an object that violates the schema is rejected by the API server and reaches no handler', async ({
  kubectl,
}) => {
  const { stderr } = await kubectl.create('crooked', { width: 'wide', height: 2 });
  expect(stderr).toContain('spec.width: Invalid value: "string": spec.width in body must be of type integer');
  expect(seen.filter(({ name }) => name === 'crooked')).toEqual([]);
});

test('kubectl shows the warnings of an allowed request', async ({ kubectl }) => {
  const { stderr, stdout } = await kubectl.create('beige', { width: 1, height: 1, color: 'beige' });
  expect(stderr).toBe('Warning: beige is deprecated\nWarning: use blue instead\n');
  expect(stdout).toContain('created');
});

test('a handler gets the user, dryRun and, for an update, the stored object as `before`', async ({
  kubectl,
}) => {
  await kubectl.create('reviewed', { width: 1, height: 1 }, ['--dry-run=server']);
  await kubectl.create('reviewed', { width: 1, height: 1 });
  await kubectl.run(['patch', 'widget', 'reviewed', '--type=merge', '-p', '{"spec":{"width":2}}']);
  await kubectl.run(['delete', 'widget', 'reviewed']);
  const requests = seen.filter(({ name }) => name === 'reviewed');
  const [{ user } = { user: '' }] = requests;
  expect(user).not.toBe('');
  expect(requests).toEqual([
    { name: 'reviewed', operation: 'CREATE', dryRun: true, user, before: undefined, sub: '' },
    { name: 'reviewed', operation: 'CREATE', dryRun: false, user, before: undefined, sub: '' },
    { name: 'reviewed', operation: 'UPDATE', dryRun: false, user, before: 1, sub: '' },
    { name: 'reviewed', operation: 'DELETE', dryRun: false, user, before: undefined, sub: '' },
  ]);
});

test('a validation handler can deny a deletion', async ({ kubectl }) => {
  await kubectl.create('kept', { width: 1, height: 1 });
  expect((await kubectl.run(['delete', 'widget', 'kept'])).stderr).toContain(
    'denied the request: the widget "kept" must not be deleted',
  );
  expect((await kubectl.run(['get', 'widget', 'kept'])).stdout).toContain('kept');
});

test('if a handler throws, the denial refers to the log, and the error is logged', async ({
  kubectl,
  namespace,
  replica: { lines },
}) => {
  const { stderr } = await kubectl.create('throws', { width: 1, height: 1 });
  expect(stderr).toContain(`the admission of Widget ${namespace}/throws failed; see the log of its webhook`);
  expect(stderr).not.toContain('hunter2');
  expect(lines).toContainEqual(
    expect.objectContaining({
      level: 'error',
      kind: 'Widget',
      object: `${namespace}/throws`,
      operation: 'CREATE',
    }),
  );
});

test('a hanging handler times out and its signal aborts', async ({ kubectl }) => {
  const { stderr } = await kubectl.create('hangs', { width: 1, height: 1 });
  expect(stderr).toContain('timed out');
  expect([...hanging].map(({ aborted }) => aborted)).toEqual([true]);
});

test('objects can be read and written in both versions without losing information', async ({
  kubectl,
  cluster,
  namespace,
}) => {
  expect((await kubectl.create('old', { size: '3x4' }, [], 'v1beta1')).stdout).toContain('created');
  const get = async (version: string, name: string) =>
    JSON.parse((await kubectl.run(['get', `widgets.${version}.${GROUP}`, name, '-o', 'json'])).stdout);
  const [asOld, asNew] = [await get('v1beta1', 'old'), await get('v1', 'old')];
  expect(asNew).toMatchObject({ apiVersion: `${GROUP}/v1`, spec: { width: 3, height: 4, color: 'blue' } });
  expect(asOld).toMatchObject({ apiVersion: `${GROUP}/v1beta1`, spec: { size: '3x4' } });
  expect(asOld.metadata.annotations[COLOR]).toBe('blue');
  const { annotations: _old, managedFields: _oldFields, ...before } = asOld.metadata;
  const { annotations: _new, managedFields: _newFields, ...after } = asNew.metadata;
  expect(after).toEqual(before);

  // The object is changed in the old version and read in the new one.
  await kubectl.run([
    'patch',
    `widgets.v1beta1.${GROUP}`,
    'old',
    '--type=merge',
    '-p',
    '{"spec":{"size":"5x6"}}',
  ]);
  expect((await get('v1', 'old')).spec).toEqual({ width: 5, height: 6, color: 'blue' });
  const list = await cluster.kubectl(['-n', namespace, 'get', `widgets.v1beta1.${GROUP}`, '-o', 'name']);
  expect(list.stdout).toContain(`widget.${GROUP}/old`);
});

test('an object that cannot be converted is rejected with a message that names the object', async ({
  kubectl,
  namespace,
}) => {
  const { stderr } = await kubectl.create('odd', { size: 'big' }, [], 'v1beta1');
  expect(stderr).toContain(
    `Widget ${namespace}/odd cannot be converted from ${GROUP}/v1beta1 to ${GROUP}/v1: the size must have the form 3x4, got big`,
  );
});

test('readiness and metrics include the webhooks', async ({ replica: { lines } }) => {
  const port = lines.find(({ msg }) => msg === 'Serving metrics, health and readiness')?.port;
  const get = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).text();
  expect(await get('/readyz?verbose')).toContain('[+]webhook ok');
  const metrics = await get('/metrics');
  const path = '/validate-webhook-test-vmwright-dev-v1-widget';
  expect(metrics).toMatch(
    new RegExp(`^controller_runtime_webhook_requests_total\\{webhook="${path}",code="200"\\} [1-9]`, 'm'),
  );
  expect(metrics).toMatch(
    new RegExp(`^controller_runtime_webhook_requests_total\\{webhook="${path}",code="500"\\} 1$`, 'm'),
  );
  expect(metrics).toMatch(/^controller_runtime_webhook_requests_total\{webhook="\/convert",code="500"\} 0$/m);
  expect(metrics).toMatch(/^controller_runtime_webhook_requests_in_flight\{webhook="\/convert"\} 0$/m);
  expect(metrics).toMatch(/^controller_runtime_webhook_latency_seconds_count\{webhook="\/convert"\} [1-9]/m);
  expect(metrics).toMatch(/^certwatcher_read_certificate_total [1-9]/m);
});

test('the program owns only the caBundle fields of the webhook configuration', async ({
  cluster,
  port,
  replica: _,
}) => {
  const [validating] = manifestsFor(NAME, port, [admission(Widget, rules)]);
  const stored = await cluster.api.get(CONFIGURATIONS[0] ?? '');
  const managers = field(stored, 'metadata', 'managedFields');
  const [ours] = Array.isArray(managers) ? managers.filter(({ manager }) => manager === NAME) : [];
  expect(JSON.stringify(ours.fieldsV1)).toBe(
    JSON.stringify({
      'f:webhooks': {
        [`k:{"name":"validate.v1.widgets.${GROUP}"}`]: { 'f:clientConfig': { 'f:caBundle': {} } },
      },
    }),
  );
  expect(stored).toMatchObject(JSON.parse(JSON.stringify(validating)));
});
