import { once } from 'node:events';
import { request } from 'node:https';
import type { LogLevel } from '@vmwright/core';
import { sampleOf } from '@vmwright/core/testing';
import { freePort } from '@vmwright/testbed';
import { test } from '@vmwright/testbed/vitest';
import { expect } from 'vitest';
import { connect } from '../../test/connect.ts';
import { waitForPermissions } from '../../test/permissions.ts';
import { listOf, replica } from '../../test/webhook-manager.ts';
import { Secret } from '../kind/builtin/secret.ts';
import { manifestYaml } from '../kind/yaml.ts';
import { rbacOf } from '../rbac/rbac.ts';

test('the HTTPS status server serves metrics and debug endpoints only to service accounts that RBAC allows', async ({
  cluster,
  namespace,
}) => {
  const name = `secure-${namespace}`;
  await cluster.apply(
    await manifestYaml(
      rbacOf({ name, namespace, controllers: [], webhooks: { webhooks: [] }, secureStatus: true }),
    ),
  );
  const rbac = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name: `${name}-prometheus` } };
  const account = (each: string) => ({
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: each, namespace },
  });
  const bind = (subject: string, role: string) => ({
    ...rbac,
    kind: 'ClusterRoleBinding',
    metadata: { name: `${name}-${subject}` },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [{ kind: 'ServiceAccount', name: subject, namespace }],
  });
  const debug = {
    ...rbac,
    kind: 'ClusterRole',
    metadata: { name: `${name}-debug` },
    rules: [{ nonResourceURLs: ['/debug/loglevel', '/debug/queues'], verbs: ['get', 'put'] }],
  };
  await using _ = {
    [Symbol.asyncDispose]: async () => {
      for (const [kind, names] of [
        ['clusterrolebinding', [name, `${name}-prometheus`, `${name}-engineer`]],
        ['clusterrole', [name, `${name}-metrics-reader`, `${name}-debug`]],
      ] as const)
        await cluster.kubectl(['delete', kind, ...names, '--ignore-not-found']);
    },
  };
  await cluster.apply(
    listOf([
      ...['prometheus', 'engineer', 'unprivileged'].map(account),
      bind('prometheus', `${name}-metrics-reader`),
      debug,
      bind('engineer', `${name}-debug`),
    ]),
  );
  await waitForPermissions(cluster, { namespace, name }, [
    { verb: 'create', group: 'authentication.k8s.io', resource: 'tokenreviews' },
    { verb: 'create', group: 'authorization.k8s.io', resource: 'subjectaccessreviews' },
  ]);
  await waitForPermissions(cluster, { namespace, name: 'prometheus' }, [{ verb: 'get', path: '/metrics' }]);
  await waitForPermissions(cluster, { namespace, name: 'engineer' }, [
    { verb: 'put', path: '/debug/loglevel' },
  ]);
  const [port, webhookPort] = [await freePort(), await freePort()];
  const logLevel: LogLevel = { level: 'info' };
  const kubeconfig = await cluster.kubeconfigFor({ namespace, name });
  const secure = { port, host: '127.0.0.1' };
  const status = { port: 0, host: '127.0.0.1', logLevel, secure };
  await using running = await replica(
    kubeconfig,
    { name, namespace, port: webhookPort, status },
    () => undefined,
  );
  const { promise: serving, resolve } = Promise.withResolvers<void>();
  running.onLine(({ msg }) => msg === 'Serving metrics over HTTPS with token authentication' && resolve());
  await Promise.race([serving, running.running]);

  await using admin = await connect(cluster.kubeconfig);
  const secret = await admin.get(Secret, { namespace, name: `${name}-webhook-certificate` });
  const ca = Buffer.from(secret.data?.['ca.crt'] ?? '', 'base64').toString();
  const send = async (token: string | undefined, method = 'GET', path = '/metrics', body = '') => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const sent = request({ host: '127.0.0.1', port, path, method, headers, ca, agent: false });
    sent.end(body);
    const [response] = await once(sent, 'response');
    return { status: response.statusCode, text: (await response.setEncoding('utf8').toArray()).join('') };
  };
  const [prometheus, engineer, unprivileged] = await Promise.all(
    ['prometheus', 'engineer', 'unprivileged'].map((each) => cluster.api.token(namespace, each)),
  );

  const { status: read, text } = await send(prometheus);
  expect(read).toBe(200);
  expect(sampleOf(text, 'certwatcher_read_certificate_total')).toBeGreaterThan(0);
  const expiry = sampleOf(text, 'vmwright_webhook_certificate_expiry_timestamp_seconds', {
    certificate: 'serving',
  });
  expect(expiry).toBeGreaterThan(Date.now() / 1000);
  expect((await send(undefined)).status).toBe(401);
  expect((await send('nonsense')).status).toBe(401);
  expect((await send(`${prometheus}x`)).status).toBe(401);
  expect(await send(unprivileged)).toEqual({
    status: 403,
    text: `system:serviceaccount:${namespace}:unprivileged may not get /metrics; to allow it, bind a ClusterRole with this path in nonResourceURLs\n`,
  });
  expect((await send(prometheus, 'PUT', '/debug/loglevel', 'debug')).status).toBe(403);
  expect(logLevel.level).toBe('info');
  expect(await send(engineer, 'PUT', '/debug/loglevel', 'debug')).toEqual({ status: 200, text: 'debug\n' });
  expect(logLevel.level).toBe('debug');
  expect((await send(engineer)).status).toBe(403);
  const queues = (token?: string) => send(token, 'GET', '/debug/queues');
  expect(await queues(engineer)).toEqual({ status: 200, text: '{}\n' });
  expect((await queues(prometheus)).status).toBe(403);
  expect((await queues()).status).toBe(401);
  expect((await send(engineer, 'GET', '/debug/heap')).status).toBe(403);
  expect((await send(undefined, 'GET', '/healthz')).status).toBe(200);
});
