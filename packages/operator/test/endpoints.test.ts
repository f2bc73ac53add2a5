import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { request } from 'node:https';
import { fileURLToPath } from 'node:url';
import { field, freePort } from '@vmwright/testbed';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SYSTEM } from './installed.ts';
import { expectExactPermissions, OPERATOR_PERMISSIONS } from './permissions.ts';
import { install, type WithCloud } from './with-cloud.ts';

let env: WithCloud;
let port: number;

beforeAll(async () => {
  port = await freePort();
  env = await install({ audit: true, args: [`--metrics-bind-address=127.0.0.1:${port}`, '--vm-refresh=1s'] });
}, 180_000);
afterAll(() => env[Symbol.asyncDispose]());

const value = (text: string, series: string) =>
  text
    .split('\n')
    .flatMap((line) => (line.startsWith(`${series} `) ? [line.slice(series.length + 1)] : []))[0];

test('the metrics contain objects by phase, certificate expiry and build', async () => {
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
  // The VmGroup controller does not run.
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

test('metrics over HTTPS need a token with the shipped metrics-reader role', async () => {
  const { cluster } = env.controlPlane;
  for (const account of ['prometheus', 'unauthorized'])
    await env.kubectl('create', 'serviceaccount', account, '-n', SYSTEM);
  await env.kubectl(
    ...['create', 'clusterrolebinding', 'prometheus', '--clusterrole=vmwright-metrics-reader'],
    `--serviceaccount=${SYSTEM}:prometheus`,
  );
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

test('the webhooks of controllers that do not run answer, so their objects can be created, changed and deleted', async () => {
  for (const sample of ['virtualmachine', 'vmdiskimage', 'vmgroup']) {
    const file = fileURLToPath(new URL(`../../../config/samples/${sample}.yaml`, import.meta.url));
    await env.kubectl('apply', '-f', file);
    await env.kubectl('annotate', '-f', file, 'vmwright.dev/deletion-policy=Orphan');
    await env.kubectl('delete', '-f', file);
  }
});

// The last test of the file: it checks the requests of all others.
test('the operator uses exactly the permissions that it ships', async () => {
  // The certificate is replaced when it expires (rotation.test.ts of the runtime).
  const renewal = ['patch secrets vmwright-webhook-certificate'];
  await expectExactPermissions(env.controlPlane, OPERATOR_PERMISSIONS, renewal);
});
