import { once } from 'node:events';
import { request } from 'node:https';
import type { LogLevel } from '@vmwright/core';
import { sampleOf } from '@vmwright/core/testing';
import { test } from '@vmwright/testbed/vitest';
import { expect } from 'vitest';
import { connect } from '../../test/connect.ts';
import { freePort, listOf, replica } from '../../test/webhook-manager.ts';
import { Secret } from '../kind/builtin/secret.ts';
import { manifestYaml } from '../kind/yaml.ts';
import { rbacOf } from '../rbac/rbac.ts';

test('metrics and log level are served over HTTPS to service accounts that RBAC allows, and to no other client', async ({
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
  const bind = (who: string, role: string) => ({
    ...rbac,
    kind: 'ClusterRoleBinding',
    metadata: { name: `${name}-${who}` },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [{ kind: 'ServiceAccount', name: who, namespace }],
  });
  const debug = {
    ...rbac,
    kind: 'ClusterRole',
    metadata: { name: `${name}-debug` },
    rules: [{ nonResourceURLs: ['/debug/loglevel'], verbs: ['get', 'put'] }],
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
      ...['prometheus', 'engineer', 'stranger'].map(account),
      bind('prometheus', `${name}-metrics-reader`),
      debug,
      bind('engineer', `${name}-debug`),
    ]),
  );
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
  running.onLine(({ msg }) => msg === 'Serving metrics over HTTPS to clients with a token' && resolve());
  await Promise.race([serving, running.running]);

  await using admin = await connect(cluster.kubeconfig);
  const held = await admin.get(Secret, { namespace, name: `${name}-webhook-certificate` });
  const ca = Buffer.from(held.data?.['ca.crt'] ?? '', 'base64').toString();
  const ask = async (token: string | undefined, method = 'GET', path = '/metrics', body = '') => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const sent = request({ ...{ host: '127.0.0.1', port, path, method, headers, ca, agent: false } });
    sent.end(body);
    const [response] = await once(sent, 'response');
    return { status: response.statusCode, text: (await response.setEncoding('utf8').toArray()).join('') };
  };
  const [prometheus, engineer, stranger] = await Promise.all(
    ['prometheus', 'engineer', 'stranger'].map((each) => cluster.api.token(namespace, each)),
  );

  const { status: read, text } = await ask(prometheus);
  expect(read).toBe(200);
  expect(sampleOf(text, 'certwatcher_read_certificate_total')).toBeGreaterThan(0);
  const expiry = sampleOf(text, 'vmwright_webhook_certificate_expiry_timestamp_seconds', {
    certificate: 'serving',
  });
  expect(expiry).toBeGreaterThan(Date.now() / 1000);
  expect((await ask(undefined)).status).toBe(401);
  expect((await ask('nonsense')).status).toBe(401);
  expect((await ask(`${prometheus}x`)).status).toBe(401);
  expect(await ask(stranger)).toEqual({
    status: 403,
    text: `system:serviceaccount:${namespace}:stranger may not get /metrics; a ClusterRole with this path in nonResourceURLs allows it\n`,
  });
  expect((await ask(prometheus, 'PUT', '/debug/loglevel', 'debug')).status).toBe(403);
  expect(logLevel.level).toBe('info');
  expect(await ask(engineer, 'PUT', '/debug/loglevel', 'debug')).toEqual({ status: 200, text: 'debug\n' });
  expect(logLevel.level).toBe('debug');
  expect((await ask(engineer)).status).toBe(403);
  expect((await ask(undefined, 'GET', '/healthz')).status).toBe(200);
});
