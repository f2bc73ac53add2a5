import { mkdir, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { nodeWorld } from '@vmwright/core';
import { temporaryFolder } from '@vmwright/testbed';
import { describe, expect, test } from 'vitest';
import { AccessError } from './access.ts';
import { type KubeconfigOptions, kubeconfigAccess } from './kubeconfig.ts';

const access = (options: Omit<KubeconfigOptions, 'world'>) =>
  kubeconfigAccess({ world: nodeWorld, ...options });

async function writeConfig(content: string | object): Promise<string> {
  const path = join(await temporaryFolder('kubeconfig'), 'config');
  await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

function config({ cluster = {}, user = {} }: { cluster?: object; user?: object }) {
  return {
    clusters: [{ name: 'here', cluster: { server: 'https://127.0.0.1:6443', ...cluster } }],
    users: [{ name: 'me', user }],
    contexts: [{ name: 'main', context: { cluster: 'here', user: 'me' } }],
    'current-context': 'main',
  };
}

const TWO_CONTEXTS = `
apiVersion: v1
kind: Config
clusters:
- name: near
  cluster: { server: https://near:6443 }
- name: far
  cluster: { server: http://far:8080/ }
users:
- name: me
  user: { token: mine }
contexts:
- name: a
  context: { cluster: near, user: me, namespace: team-a }
- name: b
  context: { cluster: far }
current-context: a
`;

describe('context', () => {
  test('the context defaults to the current context of the kubeconfig', async () => {
    const path = await writeConfig(TWO_CONTEXTS);
    const current = await access({ path });
    expect(current).toMatchObject({ server: { origin: 'https://near:6443' }, namespace: 'team-a' });
    expect(await current.credentials.authorization()).toBe('Bearer mine');

    const other = await access({ path, context: 'b' });
    expect(other).toEqual({
      server: { origin: 'http://far:8080' },
      namespace: 'default',
      credentials: expect.anything(),
    });
    expect(await other.credentials.authorization()).toBeUndefined();
  });

  test('an error names a context, cluster or user that does not exist', async () => {
    const path = await writeConfig(TWO_CONTEXTS);
    await expect(access({ path, context: 'c' })).rejects.toThrow(`${path} has no context "c"`);
    const dangling = (context: object) =>
      writeConfig({ ...config({}), contexts: [{ name: 'main', context }] }).then((at) =>
        access({ path: at }),
      );
    await expect(dangling({ cluster: 'gone' })).rejects.toThrow('has no cluster "gone"');
    await expect(dangling({ cluster: 'here', user: 'gone' })).rejects.toThrow('has no user "gone"');
    await expect(dangling({})).rejects.toThrow(
      /^context "main" in .* has no cluster; set it with `kubectl config set-context main --cluster=<name>`$/,
    );
    const none = await writeConfig({ ...config({}), 'current-context': '' });
    await expect(access({ path: none })).rejects.toThrow(
      `current-context is not set in ${none}; choose one with \`kubectl config use-context\``,
    );
  });
});

describe('KUBECONFIG with several paths', () => {
  test('several paths in KUBECONFIG are merged: the first definition wins and missing files are skipped', async () => {
    const first = await writeConfig({
      'current-context': 'main',
      users: [{ name: 'me', user: { tokenFile: 'token' } }],
    });
    const second = await writeConfig({ ...config({ user: { token: 'second' } }), 'current-context': 'x' });
    await writeFile(join(first, '../token'), 'first');
    const env = { KUBECONFIG: ['/nowhere', first, '', second].join(delimiter) };
    const { server, credentials } = await access({ env });
    expect(server.origin).toBe('https://127.0.0.1:6443');
    // The first kubeconfig sets `tokenFile: token`, so this path is relative to the directory of the first kubeconfig.
    expect(await credentials.authorization()).toBe('Bearer first');
  });

  test('several paths in KUBECONFIG are all listed in the error when none exists', async () => {
    const env = { KUBECONFIG: ['/nowhere', '/neither'].join(delimiter) };
    await expect(access({ env })).rejects.toThrow(
      'no kubeconfig at /nowhere or /neither; set KUBECONFIG to its path',
    );
  });

  test('KUBECONFIG is ignored when a path is given', async () => {
    const path = await writeConfig(config({}));
    await expect(access({ path, env: { KUBECONFIG: '/nowhere' } })).resolves.toBeDefined();
  });
});

describe('invalid kubeconfig files', () => {
  test('an AccessError reports a file that is missing or unreadable', async () => {
    await expect(access({ path: '/nowhere' })).rejects.toThrow('no kubeconfig at /nowhere');
    const folder = join(await temporaryFolder('kubeconfig'), 'config');
    await mkdir(folder);
    await expect(access({ path: folder })).rejects.toThrow(`cannot read ${folder}: EISDIR`);
  });

  test('an AccessError reports a file that is not YAML, with the line number and without quoting the line', async () => {
    const path = await writeConfig('clusters: []\nusers:\n- user: { token: s3cret\n');
    const error: unknown = await access({ path }).catch((caught) => caught);
    expect(error).toBeInstanceOf(AccessError);
    expect(error).toMatchObject({
      code: 'ACCESS',
      message: expect.stringMatching(/is not valid YAML: error in line \d$/),
    });
    expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain('s3cret');
  });

  test.for(['', 'just words', '- a\n- list\n'])(
    'an AccessError reports a file that is not a kubeconfig: %j',
    async (content) => {
      const path = await writeConfig(content);
      await expect(access({ path })).rejects.toThrow(`${path} is not a kubeconfig`);
    },
  );

  test.for([
    [{ cluster: { server: '' } }, 'the cluster has no server address'],
    [{ cluster: { server: 'localhost:8080' } }, 'the server address must begin with https:// or http://'],
    [{ cluster: { server: 'ftp://here' } }, 'the server address must begin with https:// or http://'],
    [
      { cluster: { server: 'https://rancher/k8s/c-1' } },
      'a server address with a path (/k8s/c-1) is not supported',
    ],
    [
      { cluster: { 'proxy-url': 'socks5://proxy:1080' } },
      '"proxy-url" names a SOCKS proxy, which is not supported',
    ],
    [{ cluster: { 'proxy-url': 'http://' } }, '"proxy-url" does not name a proxy'],
    [{ user: { token: 'x', as: 'root' } }, `the user's field "as" is not supported`],
    [{ user: { username: 'a', password: 'b' } }, `the user's field "username" is not supported`],
    [
      { user: { 'auth-provider': { name: 'gcp' } } },
      'the auth provider "gcp" is not supported; use an exec plugin',
    ],
    [{ user: { exec: {} } }, "the user's exec plugin has no command"],
  ] as const)(
    'an AccessError reports a file that has invalid or unsupported fields: %j',
    async ([fields, message]) => {
      const path = await writeConfig(config(fields));
      await expect(access({ path })).rejects.toThrow(`${path}: ${message}`);
    },
  );
});

test('the OIDC auth provider of a kubeconfig is used', async () => {
  const claims = Buffer.from(JSON.stringify({ exp: 4_000_000_000 })).toString('base64url');
  const provider = { name: 'oidc', config: { 'id-token': `e30.${claims}.c2ln` } };
  const { credentials } = await access({
    path: await writeConfig(config({ user: { 'auth-provider': provider } })),
  });
  expect(await credentials.authorization()).toBe(`Bearer e30.${claims}.c2ln`);
});
