import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { request } from 'node:https';
import { fileURLToPath } from 'node:url';
import { declaredMetrics } from '@vmwright/operator';
import { field, freePort } from '@vmwright/testbed';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Collector, startCollector } from './collector.ts';
import { SYSTEM } from './installed.ts';
import { auditLines } from './log-lines.ts';
import { expectExactPermissions, OPERATOR_PERMISSIONS } from './permissions.ts';
import { install, type WithCloud } from './with-cloud.ts';

let env: WithCloud;
let port: number;
let collector: Collector;

beforeAll(async () => {
  port = await freePort();
  collector = await startCollector();
  env = await install({
    audit: true,
    args: [`--metrics-bind-address=127.0.0.1:${port}`, '--vm-refresh=1s'],
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
  });
}, 180_000);
afterAll(async () => {
  await env?.[Symbol.asyncDispose]();
  await collector?.[Symbol.asyncDispose]();
});

const value = (text: string, series: string) =>
  text
    .split('\n')
    .flatMap((line) => (line.startsWith(`${series} `) ? [line.slice(series.length + 1)] : []))[0];

test('the metrics contain the number of objects by phase, the certificate expiry and the build version', async () => {
  const { version } = JSON.parse(
    await readFile(fileURLToPath(new URL('../package.json', import.meta.url)), 'utf8'),
  );
  await env.vm('counted', 'vmcounted');
  await env.vm('other', 'vmother');
  for (const name of ['counted', 'other'])
    await env.until(name, (vm) => field(vm, 'status', 'opStatus') === 'Running');
  const metrics = () => env.metrics(env.operator);
  const phases = async () => {
    const text = await metrics();
    const of = (phase: string) => value(text, `vmwright_objects{kind="VM",phase="${phase}"}`);
    return ['New', 'Running', 'Failed', 'Unknown', 'Deleted', 'None'].map(of);
  };
  await expect.poll(phases).toEqual(['0', '2', '0', '0', '0', '0']);
  await env.kubectl('delete', 'vms.samplecontroller.k8s.io', 'other');
  await expect.poll(phases).toEqual(['0', '1', '0', '0', '0', '0']);
  const text = await metrics();
  const declared = declaredMetrics().flatMap((section) => section.metrics.map(({ name }) => name));
  const exposed = [...text.matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name);
  expect(exposed.filter((name) => !declared.includes(name ?? ''))).toEqual([]);
  // The VmGroup controller does not run, so it exports no metrics.
  expect(text).not.toContain('kind="VmGroup"');
  expect(
    value(
      text,
      `vmwright_build_info{version="${version}",revision="unknown",node_version="${process.version}"}`,
    ),
  ).toBe('1');
  for (const certificate of ['serving', 'authority']) {
    const series = `vmwright_webhook_certificate_expiry_timestamp_seconds{certificate="${certificate}"}`;
    expect(Number(value(text, series))).toBeGreaterThan(Date.now() / 1000 + 86_400);
  }
});

test('creation and deletion of a machine write exactly one audit line each', async () => {
  const vm = await env.vm('audited', 'vmaudited');
  const running = await env.until('audited', (each) => field(each, 'status', 'opStatus') === 'Running');
  await env.kubectl('delete', 'vms.samplecontroller.k8s.io', 'audited');
  const { uid } = vm.metadata;
  const line = {
    level: 'info',
    kind: 'VM',
    object: 'default/audited',
    uid,
    generation: expect.any(Number),
    resource: 'Server',
    machine: field(running, 'status', 'vmId'),
    machineName: 'vmaudited',
  };
  expect(await auditLines(env.operator, 'default/audited')).toMatchObject([
    { ...line, audit: 'create', msg: 'Creating machine', reason: 'the VM has no machine' },
    { ...line, audit: 'delete', msg: 'Deleting machine', reason: 'the VM is being deleted' },
  ]);
});

test('a collector receives a span for a reconcile, and child spans for its requests', async () => {
  const vm = await env.vm('traced', 'vmtraced');
  await env.until('traced', (each) => field(each, 'status', 'opStatus') === 'Running');
  const created = () => {
    const call = collector.spans.find(
      ({ name, traceId }) => name === 'cloud POST /servers' && reconcileOf(traceId) !== undefined,
    );
    return call && reconcileOf(call.traceId);
  };
  const reconcileOf = (traceId: string) =>
    collector.spans.find(
      (span) => span.traceId === traceId && span.attributes['k8s.object.uid'] === vm.metadata.uid,
    );
  await expect.poll(created).toMatchObject({
    name: 'reconcile vm',
    parent: '',
    attributes: {
      'k8s.resource': 'vms.samplecontroller.k8s.io',
      'k8s.namespace.name': 'default',
      'k8s.object.name': 'traced',
    },
  });
  const reconcile = created();
  const calls = collector.spans.filter(({ parent }) => parent === reconcile?.id);
  expect(calls.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['cloud GET /check/{name}', 'cloud POST /servers', 'kube-apiserver PATCH']),
  );
  const write = calls.find(({ name }) => name === 'kube-apiserver PATCH');
  expect(write?.attributes).toMatchObject({
    'url.path': expect.stringContaining('/namespaces/default/vms/traced'),
    'http.response.status_code': 200,
  });
  for (const { durationMs } of calls) expect(durationMs).toBeLessThanOrEqual(reconcile?.durationMs ?? 0);
  expect([...collector.services]).toEqual(['vmwright']);
});

test('the debug endpoints on a local port show the queues and the operations in flight', async () => {
  const statusPort = /"msg":"Serving metrics, health[^\n]*"port":(\d+)/.exec(
    await readFile(env.operator.log, 'utf8'),
  )?.[1];
  const get = async (path: string) => (await fetch(`http://127.0.0.1:${statusPort}${path}`)).json();
  // The VMs of the other tests may still be in the queue for a moment.
  await expect.poll(() => get('/debug/queues')).toEqual({ vm: expect.any(Array), 'vm-deletion-status': [] });
  expect(await get('/debug/operations')).toEqual({});
});

test('metrics over HTTPS are served only to a service account that is bound to the shipped role metrics-reader', async () => {
  const { cluster } = env.controlPlane;
  for (const account of ['prometheus', 'unauthorized'])
    await env.kubectl('create', 'serviceaccount', account, '-n', SYSTEM);
  await env.kubectl(
    ...['create', 'clusterrolebinding', 'prometheus', '--clusterrole=vmwright-metrics-reader'],
    `--serviceaccount=${SYSTEM}:prometheus`,
  );
  // The API server authorizes requests according to its caches, which get the new binding a moment later.
  const as = `--as=system:serviceaccount:${SYSTEM}:prometheus`;
  await expect
    .poll(async () => (await cluster.tryKubectl(['auth', 'can-i', 'get', '/metrics', as])).stdout.trim())
    .toBe('yes');
  const secret = await cluster.api.get(`/api/v1/namespaces/${SYSTEM}/secrets/vmwright-webhook-certificate`);
  const ca = Buffer.from(String(field(secret, 'data', 'ca.crt')), 'base64').toString();
  const statusFor = async (token?: string) => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    // The DNS name of the metrics Service.
    const servername = `vmwright-metrics.${SYSTEM}.svc`;
    const sent = request({
      host: '127.0.0.1',
      port,
      path: '/metrics',
      headers,
      ca,
      servername,
      agent: false,
    });
    sent.end();
    const [response] = await once(sent, 'response');
    response.resume();
    return response.statusCode;
  };
  expect(await statusFor(await cluster.api.token(SYSTEM, 'prometheus'))).toBe(200);
  expect(await statusFor(await cluster.api.token(SYSTEM, 'unauthorized'))).toBe(403);
  expect(await statusFor()).toBe(401);
});

test('the shipped network policy is accepted', async () => {
  const { cluster } = env.controlPlane;
  const file = fileURLToPath(new URL('../../../config/network-policy/vmwright.yaml', import.meta.url));
  await cluster.apply([file]);
  const policy = await cluster.api.get(
    `/apis/networking.k8s.io/v1/namespaces/${SYSTEM}/networkpolicies/vmwright`,
  );
  expect(policy).toMatchObject({
    spec: {
      policyTypes: ['Ingress'],
      ingress: [{ ports: [{ port: 9443 }] }, { ports: [{ port: 8443 }] }],
    },
  });
});

test('webhooks of disabled controllers still answer, so that their objects can be created, changed and deleted', async () => {
  for (const sample of ['virtualmachine', 'vmdiskimage', 'vmgroup']) {
    const file = fileURLToPath(new URL(`../../../config/samples/${sample}.yaml`, import.meta.url));
    await env.kubectl('apply', '-f', file);
    await env.kubectl('annotate', '-f', file, 'vmwright.dev/deletion-policy=Orphan');
    await env.kubectl('delete', '-f', file);
  }
});

// Must be the last test of the file, because it checks the requests of all other tests.
test('the operator uses exactly the permissions that it ships', async () => {
  // No test of this file renews the webhook certificate; rotation.test.ts of the runtime does.
  const renewal = ['patch secrets vmwright-webhook-certificate'];
  await expectExactPermissions(env.controlPlane, OPERATOR_PERMISSIONS, renewal);
});
