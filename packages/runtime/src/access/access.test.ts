import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { nodeWorld } from '@vmwright/core';
import { type Cluster, temporaryFolder } from '@vmwright/testbed';
import { test } from '@vmwright/testbed/vitest';
import { describe, expect } from 'vitest';
import { clientOf, kubeconfigWith, worldWithClock } from '../../test/kubeconfig.ts';
import { Client } from '../client/client.ts';
import { ConnectionError, ForbiddenError, UnauthorizedError } from '../client/errors.ts';
import { CertificateAuthority } from '../pki/certificate.ts';
import { AccessError } from './access.ts';
import { inClusterAccess } from './in-cluster.ts';

/**
 * Returns a client's user name, by trying to read Secrets. Only administrators may read them; for any other user, the
 * API server responds with a 403 that contains the user name.
 */
async function userOf(client: Client): Promise<string> {
  try {
    await client.raw('/api/v1/secrets?limit=1');
    return 'administrator';
  } catch (error) {
    if (!(error instanceof ForbiddenError)) throw error;
    return /User "([^"]+)"/.exec(error.message)?.[1] ?? error.message;
  }
}

async function serviceAccount(cluster: Cluster, namespace: string, name: string): Promise<string> {
  await cluster.kubectl(['-n', namespace, 'create', 'serviceaccount', name]);
  return cluster.api.token(namespace, name);
}

function certificateOf({ access }: Cluster): { readonly certificate: string; readonly key: string } {
  if ('token' in access.as) throw new Error('the administrator has a token instead of a certificate');
  return access.as;
}

describe('kubeconfigAccess connects to a real API server', () => {
  test('a client certificate authenticates, inline or from files next to the kubeconfig', async ({
    cluster,
  }) => {
    const { certificate, key } = certificateOf(cluster);
    const base64 = (pem: string) => Buffer.from(pem).toString('base64');
    const inline = { 'client-certificate-data': base64(certificate), 'client-key-data': base64(key) };
    await using first = await clientOf(await kubeconfigWith(cluster, { user: inline }));
    expect(await userOf(first)).toBe('administrator');

    const asFiles = { 'client-certificate': 'me.crt', 'client-key': 'me.key' };
    const path = await kubeconfigWith(cluster, { user: asFiles });
    await writeFile(join(path, '../me.crt'), certificate);
    await writeFile(join(path, '../me.key'), key);
    await using second = await clientOf(path);
    expect(await userOf(second)).toBe('administrator');
  });

  test('a token in the kubeconfig authenticates', async ({ cluster, namespace }) => {
    const token = await cluster.api.token(namespace, 'default');
    await using client = await clientOf(await kubeconfigWith(cluster, { user: { token } }));
    expect(await userOf(client)).toBe(`system:serviceaccount:${namespace}:default`);
  });

  test('a context without a user connects as system:anonymous', async ({ cluster }) => {
    await using client = await clientOf(await kubeconfigWith(cluster, {}));
    expect(await userOf(client)).toBe('system:anonymous');
  });

  test('a server certificate of an unknown CA is rejected unless insecure-skip-tls-verify is set', async ({
    cluster,
  }) => {
    await using insecure = await clientOf(
      await kubeconfigWith(cluster, { cluster: { 'insecure-skip-tls-verify': true } }),
    );
    expect(await userOf(insecure)).toBe('system:anonymous');
    await using strict = await clientOf(await kubeconfigWith(cluster, { cluster: {} }));
    await expect(userOf(strict)).rejects.toThrow(ConnectionError);
  });

  test('the server certificate is verified against tls-server-name instead of the address', async ({
    cluster,
  }) => {
    const authority = Buffer.from(cluster.access.ca).toString('base64');
    const named = (name: string) =>
      kubeconfigWith(cluster, {
        cluster: { 'certificate-authority-data': authority, 'tls-server-name': name },
      });
    await using right = await clientOf(await named('kubernetes.default.svc'));
    expect(await userOf(right)).toBe('system:anonymous');
    await using wrong = await clientOf(await named('other.example'));
    await expect(userOf(wrong)).rejects.toThrow(ConnectionError);
  });
});

describe('token file', () => {
  test('a rotated token is used within a minute', async ({ cluster, namespace }) => {
    const [before, after] = [
      await serviceAccount(cluster, namespace, 'before'),
      await serviceAccount(cluster, namespace, 'after'),
    ];
    const path = await kubeconfigWith(cluster, { user: { tokenFile: 'token' } });
    const file = join(path, '../token');
    await writeFile(file, `${before}\n`);
    const world = worldWithClock();
    await using client = await clientOf(path, world);
    expect(await userOf(client)).toBe(`system:serviceaccount:${namespace}:before`);

    await writeFile(file, after);
    expect(await userOf(client)).toBe(`system:serviceaccount:${namespace}:before`);
    world.pass(60_000);
    expect(await userOf(client)).toBe(`system:serviceaccount:${namespace}:after`);
  });

  test('the token file is read again immediately when the API server rejects its token', async ({
    cluster,
    namespace,
  }) => {
    const path = await kubeconfigWith(cluster, { user: { tokenFile: 'token' } });
    const file = join(path, '../token');
    await writeFile(file, 'rejected');
    await using client = await clientOf(path, worldWithClock());
    await expect(userOf(client)).rejects.toThrow(UnauthorizedError);

    await writeFile(file, await cluster.api.token(namespace, 'default'));
    expect(await userOf(client)).toBe(`system:serviceaccount:${namespace}:default`);
  });

  test('the last token stays in use while the file is empty during a rewrite', async ({
    cluster,
    namespace,
  }) => {
    const path = await kubeconfigWith(cluster, { user: { tokenFile: 'token' } });
    const file = join(path, '../token');
    await writeFile(file, await cluster.api.token(namespace, 'default'));
    const world = worldWithClock();
    await using client = await clientOf(path, world);
    await userOf(client);
    await writeFile(file, '');
    world.pass(60_000);
    expect(await userOf(client)).toBe(`system:serviceaccount:${namespace}:default`);
  });

  test('a token file that is missing or empty from the start causes an AccessError with its path', async ({
    cluster,
  }) => {
    const path = await kubeconfigWith(cluster, { user: { tokenFile: 'token' } });
    const file = join(path, '../token');
    await using client = await clientOf(path);
    await expect(userOf(client)).rejects.toThrow(AccessError);
    await expect(userOf(client)).rejects.toThrow(`cannot read ${file}: ENOENT`);
    await writeFile(file, '\n');
    await expect(userOf(client)).rejects.toThrow(`${file} is empty; it must contain a bearer token`);
  });
});

test('the next connection uses a rotated CA file', async ({ cluster }) => {
  const otherCa = CertificateAuthority.create(
    { commonName: 'other' },
    { notBefore: new Date(Date.now() - 1000), notAfter: new Date(Date.now() + 3_600_000) },
  );
  const path = await kubeconfigWith(cluster, { cluster: { 'certificate-authority': 'ca.crt' } });
  const file = join(path, '../ca.crt');
  await using client = await clientOf(path);
  await expect(userOf(client)).rejects.toThrow(`cannot read ${file}: ENOENT`);
  await writeFile(file, otherCa.certificate);
  await expect(userOf(client)).rejects.toThrow(ConnectionError);
  await writeFile(file, cluster.access.ca);
  expect(await userOf(client)).toBe('system:anonymous');
});

describe('in-cluster access', () => {
  async function mountServiceAccount(cluster: Cluster, namespace: string, token: string) {
    const folder = join(await temporaryFolder('pod'), 'serviceaccount');
    await mkdir(folder);
    await writeFile(join(folder, 'token'), token);
    await writeFile(join(folder, 'ca.crt'), cluster.access.ca);
    await writeFile(join(folder, 'namespace'), `${namespace}\n`);
    const { hostname, port } = new URL(cluster.access.server);
    return { folder, env: { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port } };
  }

  test('in-cluster access uses the service account and its namespace, and follows token rotation', async ({
    cluster,
    namespace,
  }) => {
    const [first, second] = [
      await serviceAccount(cluster, namespace, 'pod'),
      await serviceAccount(cluster, namespace, 'pod-later'),
    ];
    const { folder, env } = await mountServiceAccount(cluster, namespace, first);
    const world = worldWithClock();
    const access = await inClusterAccess({ clock: world, folder, env });
    expect(access.namespace).toBe(namespace);
    await using client = new Client({ world, access, fieldManager: 'access-test' });
    expect(await userOf(client)).toBe(`system:serviceaccount:${namespace}:pod`);

    await writeFile(join(folder, 'token'), second);
    world.pass(60_000);
    expect(await userOf(client)).toBe(`system:serviceaccount:${namespace}:pod-later`);
  });

  test('an IPv6 address of the API server is bracketed', async ({ cluster, namespace }) => {
    const { folder } = await mountServiceAccount(cluster, namespace, 'none');
    const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' };
    const { server } = await inClusterAccess({ clock: nodeWorld, folder, env });
    expect(server.origin).toBe('https://[fd00::1]:443');
  });

  test('in-cluster access fails with a clear error outside of a pod, and in a pod without a service account', async ({
    cluster,
    namespace,
  }) => {
    await expect(inClusterAccess({ clock: nodeWorld, env: {} })).rejects.toThrow(
      /not running in a pod.*kubeconfig/,
    );
    const { env } = await mountServiceAccount(cluster, namespace, 'none');
    await expect(inClusterAccess({ clock: nodeWorld, env, folder: '/nowhere' })).rejects.toThrow(
      'no service account is mounted at /nowhere',
    );
  });
});
