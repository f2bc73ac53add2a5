import { once } from 'node:events';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { condition, freePort, startControlPlane } from '@vmwright/testbed';
import { expect, test } from 'vitest';
import { connect } from '../../test/connect.ts';
import { ConfigMap } from '../../test/kinds.ts';
import { defineRope, ropeRules } from '../../test/rope.ts';
import { listOf, manifestsFor, replica, waitForTrust } from '../../test/webhook-manager.ts';
import { type AdmissionRules, admission } from './admission.ts';
import { conversion } from './conversion.ts';
import { allow } from './verdict.ts';

const GROUP = 'client-certificates.vmwright.dev';
const Rope = defineRope(GROUP);
const CRD = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ropes.${GROUP}`;
const NAME = 'client-certificates';

test('webhooks that check client certificates accept the API server and reject other clients', async () => {
  await using controlPlane = await startControlPlane({ webhookClientName: 'kube-apiserver-webhooks' });
  const { cluster, pki } = controlPlane;
  const caFile = join(await mkdtemp(join(tmpdir(), 'vmwright-client-ca-')), 'ca.crt');
  await writeFile(caFile, pki.ca.certificate);
  const validated: string[] = [];
  const rules: AdmissionRules<ConfigMap> = {
    matchConditions: [{ name: 'ours', expression: "object.metadata.name.startsWith('ours')" }],
    validate: ({ metadata }) => {
      validated.push(metadata.name);
      return allow();
    },
  };
  const port = await freePort();
  const webhooks = [admission(ConfigMap, rules), conversion(Rope, ropeRules)];
  await cluster.apply(listOf(manifestsFor(NAME, port, webhooks)));
  await cluster.waitFor(CRD, (crd) => condition(crd, 'Established') === 'True');
  const clients = { caFile, names: ['kube-apiserver-webhooks'] };
  await using _ = await replica(
    cluster.kubeconfig,
    { name: NAME, namespace: 'default', port, webhooks: { clients } },
    (manager) => {
      manager.admit(ConfigMap, rules);
      manager.convert(Rope, ropeRules);
    },
  );
  const configuration = `/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/${NAME}`;
  await waitForTrust(cluster, [configuration, CRD]);
  await using client = await connect(cluster.kubeconfig);
  // The API server observes changed caBundles only after some time, through watches. The test therefore polls until the
  // API server calls the webhook.
  const create = (name: string, dryRun: boolean) =>
    client.create(ConfigMap, { metadata: { namespace: 'default', name } }, { dryRun });
  const isCalled = () => create('ours-0', true).then(() => validated.includes('ours-0'));
  await expect.poll(() => isCalled().catch(() => false)).toBe(true);
  validated.length = 0;
  await create('ours-1', false);
  expect(validated).toEqual(['ours-1']);
  const rope = { metadata: { namespace: 'default', name: 'r' }, spec: { length: '7m' } };
  const apply = () => client.apply(Rope.at('v1beta1'), rope);
  await expect.poll(() => apply().then(() => 'applied', String)).toBe('applied');
  expect((await client.get(Rope, { namespace: 'default', name: 'r' })).spec).toEqual({ meters: 7 });

  const send = async (certificate?: { certificate: string; key: string }) => {
    const { certificate: cert, key } = certificate ?? {};
    const path = '/validate--v1-configmap';
    const headers = { 'content-type': 'application/json' };
    const sent = request({
      host: '127.0.0.1',
      port,
      path,
      method: 'POST',
      headers,
      agent: false,
      rejectUnauthorized: false,
      cert,
      key,
    });
    sent.end('{}');
    const [response] = await once(sent, 'response');
    response.resume();
    return response.statusCode;
  };
  expect(await send()).toBe(401);
  expect(await send(pki.client('another-name'))).toBe(403);
  expect(await send(pki.client('kube-apiserver-webhooks'))).toBe(400); // accepted, but the body is not a review
  expect(validated).toEqual(['ours-1']);
}, 180_000);
