import { chmod, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { nodeWorld } from '@vmwright/core';
import { VirtualClock } from '@vmwright/core/testing';
import { temporaryFolder } from '@vmwright/testbed';
import { test } from '@vmwright/testbed/vitest';
import { describe, expect } from 'vitest';
import { clientOf, kubeconfigWith, worldWithClock } from '../../test/kubeconfig.ts';
import { AccessError } from './access.ts';
import { ExecPlugin } from './exec.ts';

const API_VERSION = 'client.authentication.k8s.io/v1';

/** Writes an executable `plugin` that counts its runs and then executes `script`. */
async function writePlugin(folder: string, script: string): Promise<void> {
  const path = join(folder, 'plugin');
  await writeFile(path, `#!/bin/sh\ncd "$(dirname "$0")"\necho run >> runs\n${script}\n`);
  await chmod(path, 0o755);
}

async function runs(folder: string): Promise<number> {
  return (await readFile(join(folder, 'runs'), 'utf8')).trim().split('\n').length;
}

function credential(status: object): string {
  return JSON.stringify({ apiVersion: API_VERSION, kind: 'ExecCredential', status });
}

const PRINT = 'cat credential.json';
const exec = { apiVersion: API_VERSION, command: './plugin' };

describe('exec plugin with a real API server', () => {
  test('the token of the plugin authenticates, and one run serves many requests', async ({
    cluster,
    namespace,
  }) => {
    const path = await kubeconfigWith(cluster, { user: { exec } });
    const folder = dirname(path);
    // Like a prompt for a password, the plugin reads stdin to the end. It would hang if stdin stayed open.
    await writePlugin(folder, `cat > /dev/null\n${PRINT}`);
    const token = await cluster.api.token(namespace, 'default');
    await writeFile(join(folder, 'credential.json'), credential({ token }));
    await using client = await clientOf(path);
    const requests = Array.from({ length: 5 }, () => client.raw('/api/v1/secrets'));
    for (const result of await Promise.allSettled(requests))
      expect(result).toMatchObject({
        reason: { message: expect.stringContaining(`system:serviceaccount:${namespace}:default`) },
      });
    expect(await runs(folder)).toBe(1);
  });

  test('the plugin runs again when the token expires, and immediately when the API server rejects the token', async ({
    cluster,
    namespace,
  }) => {
    const world = worldWithClock();
    const path = await kubeconfigWith(cluster, { user: { exec } });
    const folder = dirname(path);
    await writePlugin(folder, PRINT);
    const token = await cluster.api.token(namespace, 'default');
    const expirationTimestamp = new Date(world.now() + 600_000).toISOString();
    const print = (status: object) => writeFile(join(folder, 'credential.json'), credential(status));
    await print({ token, expirationTimestamp });
    await using client = await clientOf(path, world);
    const version = () => client.raw('/version');
    await version();
    world.pass(599_000);
    await version();
    expect(await runs(folder)).toBe(1);

    await print({ token: 'rejected' });
    world.pass(1_000);
    await expect(version()).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
    await print({ token });
    await version();
    await version();
    expect(await runs(folder)).toBe(4); // the plugin runs at first, after the expiry, and after each rejection
  });

  test('the client certificate of the plugin authenticates', async ({ cluster }) => {
    const { as } = cluster.access;
    if ('token' in as) throw new Error('the administrator has a token instead of a certificate');
    const path = await kubeconfigWith(cluster, { user: { exec } });
    await writePlugin(dirname(path), PRINT);
    const status = { clientCertificateData: as.certificate, clientKeyData: as.key };
    await writeFile(join(path, '../credential.json'), credential(status));
    await using client = await clientOf(path);
    await client.raw('/api/v1/secrets?limit=1');
  });

  test('a failing plugin causes an AccessError and does not run again for the same request', async ({
    cluster,
  }) => {
    const path = await kubeconfigWith(cluster, { user: { exec } });
    await writePlugin(dirname(path), 'exit 3');
    await using client = await clientOf(path);
    const failed = client.raw('/version');
    await expect(failed).rejects.toThrow(AccessError);
    await expect(failed).rejects.toThrow(/credential plugin .*plugin failed with exit code 3/);
    expect(await runs(dirname(path))).toBe(1);
  });
});

describe('exec plugin', () => {
  async function plugin(script: string, spec: object = {}): Promise<ExecPlugin> {
    const folder = await temporaryFolder('plugin');
    await writePlugin(folder, script);
    return new ExecPlugin({ clock: nodeWorld, spec: { ...exec, ...spec }, path: join(folder, 'config') });
  }

  test('a plugin gets the API version, its arguments and its environment variables', async () => {
    const echo = await plugin(
      'printf \'{"status": {"token": "%s %s %s"}}\' "$1" "$FLAVOUR" "$(echo $KUBERNETES_EXEC_INFO | tr -d \'"\')"',
      { args: ['get-token'], env: [{ name: 'FLAVOUR', value: 'mint' }] },
    );
    const info = `{apiVersion:${API_VERSION},kind:ExecCredential,spec:{interactive:false}}`;
    expect(await echo.authorization()).toBe(`Bearer get-token mint ${info}`);
  });

  test.for([
    ['garbage', 'echo s3cret'],
    ['truncated JSON', 'echo \'{"status": {"token": "s3cret"\''],
    ['a token that is not a string', 'echo \'{"status": {"token": ["s3cret"]}}\''],
    ['a certificate without its key', 'echo \'{"status": {"clientCertificateData": "s3cret"}}\''],
    ['nothing', 'true'],
    ['a secret before it fails', 'echo s3cret; echo s3cret >&2; exit 1'],
    ['a secret before it is killed', 'echo s3cret >&2; kill -9 $$'],
  ] as const)(
    'a plugin that prints %s causes an error that does not quote its output',
    async ([, script]) => {
      const garbled = await plugin(script, { args: ['--password=s3cret'] });
      const error: unknown = await garbled.authorization().catch((caught) => caught);
      expect(error).toBeInstanceOf(AccessError);
      expect(error).toMatchObject({ message: expect.stringMatching(/^credential plugin .*plugin /) });
      // All properties are checked, because a logger may print more than the message.
      expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain('s3cret');
      expect(error).not.toHaveProperty('cause');
    },
  );

  test('a plugin that is missing or not executable causes an error that says what to do', async () => {
    const missing = (spec: object) =>
      new ExecPlugin({ clock: nodeWorld, spec: { ...exec, ...spec }, path: '/nowhere/config' });
    await expect(missing({}).authorization()).rejects.toThrow(
      'credential plugin /nowhere/plugin was not found; install it or give its full path',
    );
    const hinted = missing({ command: 'no-such-program', installHint: 'apt install it' });
    await expect(hinted.authorization()).rejects.toThrow('no-such-program was not found; apt install it');
    await expect(missing({ command: '/etc/passwd' }).authorization()).rejects.toThrow(
      '/etc/passwd is not executable',
    );
    expect(() => missing({ command: '' })).toThrow("/nowhere/config: the user's exec plugin has no command");
  });

  test('a plugin that hangs is killed after a minute', async () => {
    const folder = await temporaryFolder('plugin');
    await writeFile(join(folder, 'plugin'), '#!/bin/sh\nexec sleep 1000\n', { mode: 0o755 });
    const clock = new VirtualClock();
    const hanging = new ExecPlugin({ clock, spec: exec, path: join(folder, 'config') });
    const authorization = hanging.authorization();
    clock.advance(60_000);
    await expect(authorization).rejects.toThrow('was killed by SIGKILL');
  });

  test('a hanging plugin is reported as killed after a minute even if its child process keeps stdout open', async () => {
    const folder = await temporaryFolder('plugin');
    // The shell is killed, and its child `sleep` keeps stdout open.
    const script = '#!/bin/sh\necho $$ > pid\nsleep 20\necho never\n';
    await writeFile(join(folder, 'plugin'), script.replace('pid', join(folder, 'pid')), { mode: 0o755 });
    const clock = new VirtualClock();
    const hanging = new ExecPlugin({ clock, spec: exec, path: join(folder, 'config') });
    const authorization = hanging.authorization();
    await expect.poll(() => readFile(join(folder, 'pid'), 'utf8').catch(() => '')).not.toBe('');
    clock.advance(60_000);
    await expect(authorization).rejects.toThrow('was killed by SIGKILL');
  });
});
