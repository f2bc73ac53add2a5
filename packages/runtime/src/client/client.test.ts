import { nodeWorld } from '@vmwright/core';
import { startToxiproxy } from '@vmwright/testbed';
import { test } from '@vmwright/testbed/vitest';
import { describe, expect } from 'vitest';
import { connect } from '../../test/connect.ts';
import { ConfigMap, Deployment } from '../../test/kinds.ts';
import { Client } from './client.ts';
import {
  AlreadyExistsError,
  ConflictError,
  ConnectionError,
  ForbiddenError,
  InvalidError,
  NotFoundError,
} from './errors.ts';

test('an object can be created, read, patched and deleted', async ({ cluster, namespace }) => {
  await using client = await connect(cluster.kubeconfig);
  const ref = { namespace, name: 'crud' };
  const created = await client.create(ConfigMap, { metadata: ref, data: { a: '1' } });
  expect(created.metadata.uid).toBeTruthy();
  expect((await client.get(ConfigMap, ref)).data).toEqual({ a: '1' });

  const merged = await client.mergePatch(ConfigMap, ref, { data: { b: '2' } });
  expect(merged.data).toEqual({ a: '1', b: '2' });
  const patched = await client.jsonPatch(ConfigMap, ref, [
    { op: 'test', path: '/data/b', value: '2' },
    { op: 'remove', path: '/data/b' },
  ]);
  expect(patched.data).toEqual({ a: '1' });

  await client.delete(ConfigMap, ref);
  await expect(client.get(ConfigMap, ref)).rejects.toThrow(NotFoundError);
});

test('server-side apply owns only the fields that it sets', async ({ cluster, namespace }) => {
  await using client = await connect(cluster.kubeconfig);
  await using other = await connect(cluster.kubeconfig, { fieldManager: 'other-manager' });
  const metadata = { namespace, name: 'applied' };
  await client.apply(ConfigMap, { metadata, data: { ours: '1', shared: '1' } });
  await other.apply(ConfigMap, { metadata, data: { theirs: '1' } });
  const again = await client.apply(ConfigMap, { metadata, data: { shared: '2' } });
  expect(again.data).toEqual({ shared: '2', theirs: '1' });

  const unforced = other.apply(ConfigMap, { metadata, data: { theirs: '1', shared: '3' } }, { force: false });
  await expect(unforced).rejects.toThrow(ConflictError);
  const forced = await other.apply(ConfigMap, { metadata, data: { theirs: '1', shared: '3' } });
  expect(forced.data?.shared).toBe('3');
});

test('a dry run changes nothing', async ({ cluster, namespace }) => {
  await using client = await connect(cluster.kubeconfig);
  const metadata = { namespace, name: 'dry' };
  expect((await client.create(ConfigMap, { metadata }, { dryRun: true })).metadata.uid).toBeTruthy();
  await expect(client.get(ConfigMap, metadata)).rejects.toThrow(NotFoundError);
  await client.create(ConfigMap, { metadata });
  await client.delete(ConfigMap, metadata, { dryRun: true });
  await client.get(ConfigMap, metadata);
});

test('status and scale are separate subresources', async ({ cluster, namespace }) => {
  await using client = await connect(cluster.kubeconfig);
  const metadata = { namespace, name: 'scaled' };
  const labels = { app: 'scaled' };
  const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'none' }] } };
  await client.create(Deployment, {
    metadata,
    spec: { replicas: 0, selector: { matchLabels: labels }, template },
  });
  expect((await client.setScale(Deployment, metadata, 2)).spec.replicas).toBe(2);
  expect((await client.getScale(Deployment, metadata)).spec.replicas).toBe(2);
  const { spec, status } = await client.applyStatus(Deployment, metadata, { observedGeneration: 1 });
  expect(spec.replicas).toBe(2);
  expect(status?.observedGeneration).toBeGreaterThanOrEqual(1);
});

test('pages of a list come from one snapshot; a list can be filtered by selectors', async ({
  cluster,
  namespace,
}) => {
  await using client = await connect(cluster.kubeconfig);
  const labels = { paged: 'yes' };
  const names = Array.from({ length: 7 }, (_, i) => `page-${i}`);
  for (const name of names) await client.create(ConfigMap, { metadata: { namespace, name, labels } });
  const pages = await Array.fromAsync(
    client.pages(ConfigMap, { namespace, labelSelector: 'paged=yes', limit: 3 }),
  );
  expect(pages.map(({ items }) => items.length)).toEqual([3, 3, 1]);
  expect(new Set(pages.map(({ resourceVersion }) => resourceVersion)).size).toBe(1);
  const one = await client.list(ConfigMap, { namespace, fieldSelector: 'metadata.name=page-3' });
  expect(one.items.map(({ metadata }) => metadata.name)).toEqual(['page-3']);
});

test('a watch with sendInitialEvents sends the existing objects, a bookmark, then each change', async ({
  cluster,
  namespace,
}) => {
  await using client = await connect(cluster.kubeconfig);
  const labelSelector = 'watched=yes';
  const metadata = { namespace, name: 'watched', labels: { watched: 'yes' } };
  await client.create(ConfigMap, { metadata });
  const seen: string[] = [];
  for await (const event of client.watch(ConfigMap, { namespace, labelSelector, sendInitialEvents: true })) {
    if (event.type === 'BOOKMARK' && !event.initialEventsEnd) continue; // a periodic bookmark
    seen.push(event.type);
    if (event.type === 'BOOKMARK') await client.mergePatch(ConfigMap, metadata, { data: { a: '1' } });
    if (event.type === 'MODIFIED') await client.delete(ConfigMap, metadata);
    if (event.type === 'DELETED') break;
  }
  expect(seen).toEqual(['ADDED', 'BOOKMARK', 'MODIFIED', 'DELETED']);
});

test('a watch ends when its signal aborts', async ({ cluster, namespace }) => {
  await using client = await connect(cluster.kubeconfig);
  const stop = new AbortController();
  const watching = Array.fromAsync(
    client.watch(ConfigMap, { namespace, signal: stop.signal, sendInitialEvents: true }),
  );
  stop.abort(new Error('enough'));
  await expect(watching).rejects.toThrow('enough');
});

describe('errors', () => {
  test('each kind of failure has its own error class', async ({ cluster, namespace }) => {
    await using client = await connect(cluster.kubeconfig);
    const metadata = { namespace, name: 'twice' };
    const { metadata: first } = await client.create(ConfigMap, { metadata });
    await expect(client.create(ConfigMap, { metadata })).rejects.toThrow(AlreadyExistsError);
    await client.mergePatch(ConfigMap, metadata, { data: { a: '1' } });
    const stale = { metadata: { resourceVersion: first.resourceVersion }, data: { a: '2' } };
    await expect(client.mergePatch(ConfigMap, metadata, stale)).rejects.toThrow(ConflictError);
    await expect(client.delete(ConfigMap, metadata, { uid: 'another' })).rejects.toThrow(ConflictError);

    const kubeconfig = await cluster.kubeconfigFor({ namespace, name: 'default' });
    await using unprivileged = await connect(kubeconfig);
    await expect(unprivileged.list(ConfigMap, { namespace })).rejects.toThrow(ForbiddenError);
  });

  test('an InvalidError lists the invalid fields', async ({ cluster, namespace }) => {
    await using client = await connect(cluster.kubeconfig);
    const error = await client
      .create(ConfigMap, { metadata: { namespace, name: 'Bad Name' } })
      .catch((caught) => caught);
    expect(error).toBeInstanceOf(InvalidError);
    expect(error.causes).toMatchObject([{ field: 'metadata.name' }]);
    expect(error.message).toMatch(
      /^POST \/api\/v1\/namespaces\/.*\/configmaps: ConfigMap "Bad Name" is invalid/,
    );
  });

  test('a server that does not respond causes a ConnectionError within the timeout', async ({
    cluster,
    namespace,
  }) => {
    await using toxiproxy = await startToxiproxy();
    const proxy = await toxiproxy.proxy({ name: 'api', upstream: new URL(cluster.access.server).host });
    const { ca, as } = cluster.access;
    if ('token' in as) throw new Error('the administrator has a token instead of a certificate');
    const tls = async () => ({ ca, certificate: as.certificate, key: as.key });
    const server = { origin: `https://${proxy.address}`, tls };
    const credentials = { authorization: async () => undefined, renew: async () => false };
    await using client = new Client({
      world: nodeWorld,
      access: { server, credentials, namespace },
      fieldManager: 'test',
    });
    await client.list(ConfigMap, { namespace });
    await using _ = await proxy.halfOpen();
    const error = await client.list(ConfigMap, { namespace, timeoutMs: 300 }).catch((caught) => caught);
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error.message).toMatch(/^GET .*configmaps: no response within 0.3 s$/);
  });
});
