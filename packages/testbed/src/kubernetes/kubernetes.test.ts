import { existsSync } from 'node:fs';
import { expect } from 'vitest';
import { test } from '../vitest/index.ts';
import { field } from './api.ts';
import { startControlPlane } from './control-plane.ts';

const GROUP = 'kubernetes-test.testbed.vmwright.dev';

const crd = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `gauges.${GROUP}` },
  spec: {
    group: GROUP,
    scope: 'Namespaced',
    names: { kind: 'Gauge', plural: 'gauges', singular: 'gauge' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                properties: { level: { type: 'integer', maximum: 10 } },
                'x-kubernetes-validations': [{ rule: 'self.level != 7', message: 'seven is taken' }],
              },
            },
          },
        },
      },
    ],
  },
};

function gauge(namespace: string, level: unknown): string {
  return JSON.stringify({
    apiVersion: `${GROUP}/v1`,
    kind: 'Gauge',
    metadata: { name: 'g', namespace },
    spec: { level },
  });
}

test('the API server serves a CRD and rejects objects that violate its schema or validation rules', async ({
  cluster,
  namespace,
}) => {
  await cluster.kubectl(['apply', '-f', '-'], { input: JSON.stringify(crd) });
  await cluster.kubectl(['wait', '--for=condition=Established', `crd/gauges.${GROUP}`]);
  // kubectl finds the new kind through discovery, which may lack the kind for a moment after the CRD is Established.
  const list = () => cluster.tryKubectl(['-n', namespace, 'get', `gauges.${GROUP}`]);
  await expect.poll(async () => (await list()).code).toBe(0);

  const tooHigh = await cluster.tryKubectl(['apply', '-f', '-'], { input: gauge(namespace, 11) });
  expect(tooHigh.code).toBe(1);
  expect(tooHigh.stderr).toContain('spec.level in body should be less than or equal to 10');
  const taken = await cluster.tryKubectl(['apply', '-f', '-'], { input: gauge(namespace, 7) });
  expect(taken.stderr).toContain('seven is taken');

  const accepted = await cluster.kubectl(['apply', '-f', '-'], { input: gauge(namespace, 3) });
  expect(accepted.stdout).toContain('gauge.kubernetes-test.testbed.vmwright.dev/g created');
  await cluster.kubectl(['delete', 'crd', `gauges.${GROUP}`]);
});

test('an object is garbage-collected when its owner is deleted', async ({ cluster, namespace }) => {
  const configMaps = `/api/v1/namespaces/${namespace}/configmaps`;
  const owner = await cluster.api.create(configMaps, configMap('owner'));
  const { name, uid } = owner.metadata;
  await cluster.api.create(
    configMaps,
    configMap('owned', { ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name, uid }] }),
  );
  await cluster.api.delete(`${configMaps}/owner`);
  await cluster.waitForGone(`${configMaps}/owned`);
});

test('deleting a namespace removes its content', async ({ cluster }) => {
  const namespace = await cluster.namespace('doomed');
  await cluster.api.create(`/api/v1/namespaces/${namespace.name}/configmaps`, configMap('inside'));
  await namespace[Symbol.asyncDispose]();
  await cluster.waitForGone(`/api/v1/namespaces/${namespace.name}`);
});

test('a service account can list config maps only with a role binding', async ({ cluster, namespace }) => {
  const kubeconfig = await cluster.kubeconfigFor({ namespace, name: 'default' });
  const get = ['-n', namespace, 'get', 'configmaps'];

  const forbidden = await cluster.tryKubectl(get, { kubeconfig });
  expect(forbidden.code).toBe(1);
  expect(forbidden.stderr).toContain(
    `User "system:serviceaccount:${namespace}:default" cannot list resource "configmaps"`,
  );

  await cluster.kubectl([
    '-n',
    namespace,
    'create',
    'role',
    'reader',
    '--verb=list',
    '--resource=configmaps',
  ]);
  await cluster.kubectl([
    '-n',
    namespace,
    'create',
    'rolebinding',
    'reader',
    '--role=reader',
    `--serviceaccount=${namespace}:default`,
  ]);
  // Retries, because the API server's authorizer reads RBAC from a cache.
  await expect
    .poll(async () => (await cluster.tryKubectl([...get, '-o', 'name'], { kubeconfig })).stdout)
    .toContain('configmap/kube-root-ca.crt');
});

test('the API server has the version that assets/catalog.ts pins', async ({ cluster }) => {
  const version: unknown = JSON.parse(await cluster.api.text('/version'));
  expect(field(version, 'gitVersion')).toBe('v1.35.4');
});

test('a private control plane keeps its objects when etcd and the API server are killed', async () => {
  await using controlPlane = await startControlPlane();
  const { cluster, etcd, apiserver } = controlPlane;
  const configMaps = '/api/v1/namespaces/default/configmaps';
  const { metadata } = await cluster.api.create(configMaps, configMap('kept'));
  const waiting = cluster.waitFor(`${configMaps}/later`, () => true); // the watch breaks before the object is created
  await etcd.kill();
  await apiserver.kill();
  await etcd.start();
  await apiserver.start();
  expect((await cluster.api.get(`${configMaps}/kept`)).metadata.uid).toBe(metadata.uid);
  await cluster.api.create(configMaps, configMap('later'));
  await waiting;
  const { dir } = etcd;
  await controlPlane[Symbol.asyncDispose]();
  expect(existsSync(dir)).toBe(false);
});

function configMap(name: string, metadata: object = {}): object {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...metadata } };
}
