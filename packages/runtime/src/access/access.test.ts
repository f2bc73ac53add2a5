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

/** As whom the API server knows us: service accounts of the tests may not read secrets, and the refusal names them. */
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
  if ('token' in access.as) throw new Error('the administrator has a certificate');
  return access.as;
}

describe('a kubeconfig, on the real API server', () => {
  test('lets one in by a client certificate, in place or as files beside it', async ({ cluster }) => {
    const { certificate, key } = certificateOf(cluster);
    const base64 = (pem: string) => Buffer.from(pem).toString('base64');
    const inPlace = { 'client-certificate-data': base64(certificate), 'client-key-data': base64(key) };
    await using first = await clientOf(await kubeconfigWith(cluster, { user: inPlace }));
    expect(await userOf(first)).toBe('administrator');

    const asFiles = { 'client-certificate': 'me.crt', 'client-key': 'me.key' };
    const path = await kubeconfigWith(cluster, { user: asFiles });
    await writeFile(join(path, '../me.crt'), certificate);
    await writeFile(join(path, '../me.key'), key);
    await using second = await clientOf(path);
    expect(await userOf(second)).toBe('administrator');
  });

  test('lets one in by a token', async ({ cluster, namespace }) => {
    const token = await cluster.api.token(namespace, 'default');
    await using client = await clientOf(await kubeconfigWith(cluster, { user: { token } }));
    expect(await userOf(client)).toBe(`system:serviceaccount:${namespace}:default`);
  });

  test('without a user is nobody in particular', async ({ cluster }) => {
    await using client = await clientOf(await kubeconfigWith(cluster, {}));
    expect(await userOf(client)).toBe('system:anonymous');
  });

  test('that skips verification needs no authority; without either the server is not trusted', async ({
    cluster,
  }) => {
    await using insecure = await clientOf(
      await kubeconfigWith(cluster, { cluster: { 'insecure-skip-tls-verify': true } }),
    );
    expect(await userOf(insecure)).toBe('system:anonymous');
    await using strict = await clientOf(await kubeconfigWith(cluster, { cluster: {} }));
    await expect(userOf(strict)).rejects.toThrow(ConnectionError);
  });

  test('may name the server by another name than its address', async ({ cluster }) => {
    const authority = Buffer.from(cluster.access.ca).toString('base64');
    const named = (name: string) =>
      kubeconfigWith(cluster, {
        cluster: { 'certificate-authority-data': authority, 'tls-server-name': name },
      });
    await using right = await clientOf(await named('kubernetes.default.svc'));
    expect(await userOf(right)).toBe('system:anonymous');
    await using wrong = await clientOf(await named('somebody.else'));
    await expect(userOf(wrong)).rejects.toThrow(ConnectionError);
  });
});

describe('a token file', () => {
  test('that was replaced is taken up within a minute', async ({ cluster, namespace }) => {
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

  test('is read again at once when its token is refused', async ({ cluster, namespace }) => {
    const path = await kubeconfigWith(cluster, { user: { tokenFile: 'token' } });
    const file = join(path, '../token');
    await writeFile(file, 'refused');
    await using client = await clientOf(path, worldWithClock());
    await expect(userOf(client)).rejects.toThrow(UnauthorizedError);

    await writeFile(file, await cluster.api.token(namespace, 'default'));
    expect(await userOf(client)).toBe(`system:serviceaccount:${namespace}:default`);
  });

  test('that is empty or gone while it is being replaced changes nothing', async ({ cluster, namespace }) => {
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

  test('that is not there, or empty from the start, is said in a sentence', async ({ cluster }) => {
    const path = await kubeconfigWith(cluster, { user: { tokenFile: 'token' } });
    const file = join(path, '../token');
    await using client = await clientOf(path);
    await expect(userOf(client)).rejects.toThrow(AccessError);
    await expect(userOf(client)).rejects.toThrow(`cannot read ${file}: ENOENT`);
    await writeFile(file, '\n');
    await expect(userOf(client)).rejects.toThrow(`${file} holds no token`);
  });
});

test('an authority that was replaced is used by the next connection', async ({ cluster }) => {
  const stranger = CertificateAuthority.create(
    { commonName: 'stranger' },
    { notBefore: new Date(Date.now() - 1000), notAfter: new Date(Date.now() + 3_600_000) },
  );
  const path = await kubeconfigWith(cluster, { cluster: { 'certificate-authority': 'ca.crt' } });
  const file = join(path, '../ca.crt');
  await using client = await clientOf(path);
  await expect(userOf(client)).rejects.toThrow(`cannot read ${file}: ENOENT`);
  await writeFile(file, stranger.certificate);
  await expect(userOf(client)).rejects.toThrow(ConnectionError);
  await writeFile(file, cluster.access.ca);
  expect(await userOf(client)).toBe('system:anonymous');
});

describe('in a pod', () => {
  async function mountServiceAccount(cluster: Cluster, namespace: string, token: string) {
    const folder = join(await temporaryFolder('pod'), 'serviceaccount');
    await mkdir(folder);
    await writeFile(join(folder, 'token'), token);
    await writeFile(join(folder, 'ca.crt'), cluster.access.ca);
    await writeFile(join(folder, 'namespace'), `${namespace}\n`);
    const { hostname, port } = new URL(cluster.access.server);
    return { folder, env: { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port } };
  }

  test('the service account is who we are, and its namespace ours', async ({ cluster, namespace }) => {
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

  test('an IPv6 address of the API server is put in brackets', async ({ cluster, namespace }) => {
    const { folder } = await mountServiceAccount(cluster, namespace, 'none');
    const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' };
    const { server } = await inClusterAccess({ clock: nodeWorld, folder, env });
    expect(server.origin).toBe('https://[fd00::1]:443');
  });

  test('outside of one, or without a service account, the error says what to do', async ({
    cluster,
    namespace,
  }) => {
    await expect(inClusterAccess({ clock: nodeWorld, env: {} })).rejects.toThrow(/not in a pod.*kubeconfig/);
    const { env } = await mountServiceAccount(cluster, namespace, 'none');
    await expect(inClusterAccess({ clock: nodeWorld, env, folder: '/nowhere' })).rejects.toThrow(
      "the pod's service account is not mounted at /nowhere",
    );
  });
});
