import { chmod, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { nodeWorld } from '@vmwright/core';
import { temporaryFolder } from '@vmwright/testbed';
import { test } from '@vmwright/testbed/vitest';
import { describe, expect } from 'vitest';
import { clientOf, kubeconfigWith, worldWithClock } from '../../test/kubeconfig.ts';
import { VirtualClock } from '../../test/virtual-clock.ts';
import { AccessError } from './access.ts';
import { ExecPlugin } from './exec.ts';

const API_VERSION = 'client.authentication.k8s.io/v1';

/** A program in a folder of its own that notes each run and then does what `script` says. */
async function program(folder: string, script: string): Promise<void> {
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

describe('an exec plugin, on the real API server', () => {
  test('gives a token, and is run once for many requests', async ({ cluster, namespace }) => {
    const path = await kubeconfigWith(cluster, { user: { exec } });
    const folder = dirname(path);
    // It reads its input to the end, as one that asks for a password does: nobody answers, and it goes on.
    await program(folder, `cat > /dev/null\n${PRINT}`);
    const token = await cluster.api.token(namespace, 'default');
    await writeFile(join(folder, 'credential.json'), credential({ token }));
    await using client = await clientOf(path);
    const asked = Array.from({ length: 5 }, () => client.raw('/api/v1/secrets'));
    for (const answer of await Promise.allSettled(asked))
      expect(answer).toMatchObject({
        reason: { message: expect.stringContaining(`system:serviceaccount:${namespace}:default`) },
      });
    expect(await runs(folder)).toBe(1);
  });

  test('is run again when the token expires, and at once when it is refused', async ({
    cluster,
    namespace,
  }) => {
    const world = worldWithClock();
    const path = await kubeconfigWith(cluster, { user: { exec } });
    const folder = dirname(path);
    await program(folder, PRINT);
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

    await print({ token: 'refused' });
    world.pass(1_000);
    await expect(version()).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
    await print({ token });
    await version();
    await version();
    expect(await runs(folder)).toBe(4); // first, expired, twice refused
  });

  test('gives a client certificate', async ({ cluster }) => {
    const { as } = cluster.access;
    if ('token' in as) throw new Error('the administrator has a certificate');
    const path = await kubeconfigWith(cluster, { user: { exec } });
    await program(dirname(path), PRINT);
    const status = { clientCertificateData: as.certificate, clientKeyData: as.key };
    await writeFile(join(path, '../credential.json'), credential(status));
    await using client = await clientOf(path);
    await client.raw('/api/v1/secrets?limit=1');
  });

  test('that fails is said in a sentence, and not run again for the same request', async ({ cluster }) => {
    const path = await kubeconfigWith(cluster, { user: { exec } });
    await program(dirname(path), 'exit 3');
    await using client = await clientOf(path);
    const failed = client.raw('/version');
    await expect(failed).rejects.toThrow(AccessError);
    await expect(failed).rejects.toThrow(/the credential plugin .*plugin failed with exit code 3/);
    expect(await runs(dirname(path))).toBe(1);
  });
});

describe('an exec plugin', () => {
  async function plugin(script: string, spec: object = {}): Promise<ExecPlugin> {
    const folder = await temporaryFolder('plugin');
    await program(folder, script);
    return new ExecPlugin({ clock: nodeWorld, spec: { ...exec, ...spec }, path: join(folder, 'config') });
  }

  test('is told the version to speak, and gets its arguments and variables', async () => {
    const echo = await plugin(
      'printf \'{"status": {"token": "%s %s %s"}}\' "$1" "$FLAVOUR" "$(echo $KUBERNETES_EXEC_INFO | tr -d \'"\')"',
      { args: ['get-token'], env: [{ name: 'FLAVOUR', value: 'mint' }] },
    );
    const info = `{apiVersion:${API_VERSION},kind:ExecCredential,spec:{interactive:false}}`;
    expect(await echo.authorization()).toBe(`Bearer get-token mint ${info}`);
  });

  test.for([
    ['garbage', 'echo s3cret'],
    ['half a JSON', 'echo \'{"status": {"token": "s3cret"\''],
    ['a token that is no text', 'echo \'{"status": {"token": ["s3cret"]}}\''],
    ['a certificate without its key', 'echo \'{"status": {"clientCertificateData": "s3cret"}}\''],
    ['nothing', 'true'],
    ['a secret before it fails', 'echo s3cret; echo s3cret >&2; exit 1'],
    ['a secret before it is killed', 'echo s3cret >&2; kill -9 $$'],
  ] as const)('that prints %s makes an error without what it printed', async ([, script]) => {
    const garbled = await plugin(script, { args: ['--password=s3cret'] });
    const error: unknown = await garbled.authorization().catch((caught) => caught);
    expect(error).toBeInstanceOf(AccessError);
    expect(error).toMatchObject({ message: expect.stringMatching(/^the credential plugin .*plugin /) });
    // Neither the message nor anything that a logger may print along with it.
    expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain('s3cret');
    expect(error).not.toHaveProperty('cause');
  });

  test('that is not installed, or may not be run, is named with what to do', async () => {
    const missing = (spec: object) =>
      new ExecPlugin({ clock: nodeWorld, spec: { ...exec, ...spec }, path: '/nowhere/config' });
    await expect(missing({}).authorization()).rejects.toThrow(
      'the credential plugin /nowhere/plugin is not there; install it, or give its full path',
    );
    const hinted = missing({ command: 'no-such-program', installHint: 'apt install it' });
    await expect(hinted.authorization()).rejects.toThrow('no-such-program is not there; apt install it');
    await expect(missing({ command: '/etc/passwd' }).authorization()).rejects.toThrow(
      '/etc/passwd may not be executed',
    );
    expect(() => missing({ command: '' })).toThrow(
      "/nowhere/config: the user's exec plugin names no command",
    );
  });

  test('that hangs is ended after a minute', async () => {
    const folder = await temporaryFolder('plugin');
    await writeFile(join(folder, 'plugin'), '#!/bin/sh\nexec sleep 1000\n', { mode: 0o755 });
    const clock = new VirtualClock();
    const hanging = new ExecPlugin({ clock, spec: exec, path: join(folder, 'config') });
    const asked = hanging.authorization();
    clock.advance(60_000);
    await expect(asked).rejects.toThrow('was ended by SIGKILL');
  });

  test('whose own children hang is not waited for either', async () => {
    const folder = await temporaryFolder('plugin');
    // The shell is ended, and the sleep it has started holds on to what it would print to.
    const script = '#!/bin/sh\necho $$ > pid\nsleep 20\necho never\n';
    await writeFile(join(folder, 'plugin'), script.replace('pid', join(folder, 'pid')), { mode: 0o755 });
    const clock = new VirtualClock();
    const hanging = new ExecPlugin({ clock, spec: exec, path: join(folder, 'config') });
    const asked = hanging.authorization();
    await expect.poll(() => readFile(join(folder, 'pid'), 'utf8').catch(() => '')).not.toBe('');
    clock.advance(60_000);
    await expect(asked).rejects.toThrow('was ended by SIGKILL');
  });
});
