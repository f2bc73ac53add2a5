import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nodeWorld } from '@vmwright/core';
import { temporaryFolder } from '@vmwright/testbed';
import { describe, expect, test } from 'vitest';
import { CloudClient } from '../src/index.ts';
import { API_KEY, CloudProcess, MAIN } from './cloud-process.ts';
import { record } from './openapi.ts';

function run(args: readonly string[], env: Record<string, string> = {}) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', MAIN, ...args],
    { encoding: 'utf8', env: { PATH: process.env.PATH ?? '', ...env } },
  );
  return { status, stdout, stderr };
}

const keys = { CLOUD_API_KEYS: API_KEY };

describe('failing start', () => {
  test.for([
    [['serve', '--prot', '1'], keys, "Unknown option '--prot'; see vmwright-cloud --help\n"],
    [
      ['serve', '--driver', 'xen'],
      keys,
      '--driver must be simulated or qemu, not "xen"; see vmwright-cloud --help\n',
    ],
    [
      ['serve', '--config', '/nowhere'],
      keys,
      "cannot read the config file: ENOENT: no such file or directory, open '/nowhere'\n",
    ],
    [
      ['serve', '--data', '/nowhere/x'],
      {},
      'no API keys: pass a file with one key per line to --keys, or set CLOUD_API_KEYS\n',
    ],
    [
      ['serve', '--prohibited', '/nowhere'],
      keys,
      "cannot read the prohibited names: ENOENT: no such file or directory, open '/nowhere'\n",
    ],
    [
      ['serve', '--tls-cert', '/nowhere', '--tls-key', '/nowhere'],
      keys,
      "cannot use the TLS certificate: ENOENT: no such file or directory, open '/nowhere'\n",
    ],
    [
      ['serve', '--tls-cert', '/dev/null', '--tls-key', '/dev/null'],
      keys,
      'cannot use the TLS certificate: error:0480006C:PEM routines::no start line\n',
    ],
    [
      ['serve', '--data', '/nowhere/x'],
      keys,
      'cannot use /nowhere/x: unable to open database file; its directory must exist and be writable\n',
    ],
  ] as const)('a start with %j fails with exit code 1 and one line of explanation', ([args, env, stderr]) => {
    expect(run(args, env)).toEqual({ status: 1, stdout: '', stderr });
  });

  test('a start fails with one line of explanation if the database or the port cannot be used', async () => {
    await using cloud = await CloudProcess.start();
    const common = ['serve', '--listen', '127.0.0.1:0'];
    expect(run([...common, '--data', cloud.data], keys).stderr).toBe(
      `${cloud.data} is in use by another vmwright-cloud process; use another --data file\n`,
    );
    const other = join(cloud.dir, 'other.sqlite');
    const { host } = new URL(cloud.url);
    const taken = run(['serve', '--listen', host, '--data', other], keys);
    expect(taken.status).toBe(1);
    expect(taken.stderr).toBe(
      `cannot listen on ${host}: listen EADDRINUSE: address already in use ${host}\n`,
    );
    await cloud.client.create({ name: 'x' }, 'k');
    await cloud.kill();
    expect(run([...common, '--data', cloud.data, '--driver', 'qemu'], keys).stderr).toBe(
      `${cloud.data} contains servers of the simulated driver; use --driver simulated or another --data file\n`,
    );
  });

  test('a start with the qemu driver fails with one line of explanation if QEMU is not installed', async () => {
    const dir = await temporaryFolder('serve');
    const config = join(dir, 'config.json');
    writeFileSync(config, '{"qemu":{"binary":"qemu-system-nowhere"}}');
    const args = ['serve', '--driver', 'qemu', '--data', join(dir, 'x.sqlite'), '--config', config];
    expect(run(args, keys)).toEqual({
      status: 1,
      stdout: '',
      stderr:
        'the qemu driver needs qemu-system-nowhere, which is not installed; install it, or set qemu.binary in the --config file\n',
    });
  });
});

test('--help prints the usage', () => {
  expect(run(['--help'])).toMatchObject({
    status: 0,
    stderr: '',
    stdout: expect.stringMatching(/^vmwright-cloud serve/),
  });
});

describe('SIGTERM', () => {
  test('after SIGTERM the cloud finishes pending requests, accepts no connections, and exits with 0', async () => {
    await using cloud = await CloudProcess.start({ args: ['--enable-faults'] });
    const body = JSON.stringify({ seed: 1, latencyMs: { min: 300, max: 300 } });
    await cloud.fetch('/faults', { method: 'PUT', headers: { 'content-type': 'application/json' }, body });
    const created = cloud.client.create({ name: 'x' }, 'k', { timeoutMs: 30_000 });
    while (record(await (await cloud.fetch('/faults')).json()).requests !== 1);
    cloud.signal('SIGTERM');
    const { id } = await created;
    expect(await cloud.exited()).toBe(0);
    await expect(fetch(cloud.url)).rejects.toThrow();
    await cloud.start();
    expect(await cloud.client.get(id)).toMatchObject({ name: 'x' });
    // Audit events that were written before a graceful stop are not repeated.
    expect(cloud.audit.filter(({ event }) => event === 'created')).toHaveLength(1);
  });

  test('after SIGTERM the cloud exits without waiting for idle connections or for the deletion of machines', async () => {
    const config = { simulated: { stopMs: { min: 3_600_000, max: 3_600_000 } } };
    await using cloud = await CloudProcess.start({ config });
    const { id } = await cloud.client.create({ name: 'x' }, 'k'); // the client keeps this connection open and idle
    await cloud.client.delete(id);
    cloud.signal('SIGTERM');
    expect(await cloud.exited()).toBe(0);
  });
});

describe('SIGHUP', () => {
  test('SIGHUP reloads the API keys', async () => {
    const file = join(await temporaryFolder('serve'), 'keys');
    writeFileSync(file, 'the-old-key-0123456789\n');
    await using cloud = await CloudProcess.start({ args: ['--keys', file] });
    const status = async (key: string) =>
      (await cloud.fetch('/servers', { headers: { authorization: `Bearer ${key}` } })).status;
    expect(await status('the-old-key-0123456789')).toBe(200);
    writeFileSync(file, 'the-new-key-0123456789\n');
    cloud.signal('SIGHUP');
    await cloud.logged(/Reloaded prohibited names/); // logged after the keys were reloaded
    expect([await status('the-old-key-0123456789'), await status('the-new-key-0123456789')]).toEqual([
      401, 200,
    ]);
  });

  test('after SIGHUP, invalid files are logged, and the previous API keys and prohibited names stay in effect', async () => {
    const file = join(await temporaryFolder('serve'), 'keys');
    writeFileSync(file, 'the-old-key-0123456789\n');
    await using cloud = await CloudProcess.start({ args: ['--keys', file], prohibited: ['root'] });
    writeFileSync(file, 'short\n');
    writeFileSync(cloud.prohibited, 'a/b\n');
    cloud.signal('SIGHUP');
    // The cloud also polls the file of the prohibited names. So the error of this file may be logged before the signal
    // is handled, and does not show that the API keys were reloaded.
    await cloud.logged(/Reloading API keys failed/);
    await cloud.logged(/Reloading prohibited names failed/);
    expect(cloud.log).toContain(`${file}:1: a key must have at least 16 characters; this one has 5`);
    const headers = { authorization: 'Bearer the-old-key-0123456789' };
    expect((await cloud.fetch('/check/root', { headers })).status).toBe(403);
  });
});

test('prohibited names are reloaded when their file changes', async () => {
  await using cloud = await CloudProcess.start();
  await cloud.client.check('root');
  writeFileSync(cloud.prohibited, 'root  it is the superuser’s\n');
  await cloud.logged(/Reloaded prohibited names/);
  await expect(cloud.client.check('root')).rejects.toThrow(
    'The name "root" is prohibited: it is the superuser’s.',
  );
});

test('no log contains an API key, valid or invalid', async () => {
  await using cloud = await CloudProcess.start({ args: ['--log-level', 'debug', '--enable-faults'] });
  const wrong = 'a-wrong-key-0123456789';
  await cloud.fetch('/servers', { headers: { authorization: `Bearer ${wrong}` } });
  await cloud.fetch('/metrics');
  await cloud.fetch('/nothing');
  await cloud.fetch('/servers', { method: 'POST', body: 'x' });
  const { id } = await cloud.client.create({ name: 'x' }, 'k');
  await cloud.audited('running', id);
  cloud.signal('SIGTERM');
  await cloud.exited();
  const all = cloud.log + JSON.stringify(cloud.audit);
  expect(all).toContain('"path":"/servers","status":401');
  expect(all).toContain('"path":"/metrics","status":200');
  for (const secret of [API_KEY, wrong, 'Bearer', 'authorization']) expect(all).not.toContain(secret);
});

test('with --log-level error, requests are not logged, but the listen address is', async () => {
  await using cloud = await CloudProcess.start({ args: ['--log-level', 'error'] });
  await cloud.client.check('x');
  cloud.signal('SIGTERM');
  await cloud.exited();
  expect(cloud.log.trim().split('\n')).toHaveLength(1);
  expect(cloud.log).toContain(`"msg":"Listening","url":"${cloud.url}"`);
});

test('TLS: a client that trusts the certificate can connect, and SIGHUP reloads the certificate', async () => {
  const dir = await temporaryFolder('serve');
  const [certificate, key] = [join(dir, 'tls.crt'), join(dir, 'tls.key')];
  const issue = () =>
    execFileSync(
      process.env.OPENSSL ?? 'openssl',
      [
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:prime256v1',
        '-nodes',
        '-days',
        '2',
      ].concat([
        '-subj',
        '/CN=cloud',
        '-addext',
        'subjectAltName=IP:127.0.0.1',
        '-keyout',
        key,
        '-out',
        certificate,
      ]),
      { stdio: 'ignore' },
    );
  issue();
  await using cloud = await CloudProcess.start({ args: ['--tls-cert', certificate, '--tls-key', key] });
  expect(cloud.url).toMatch(/^https:/);
  const trusting = () => {
    const ca = readFileSync(certificate, 'utf8');
    return new CloudClient({ world: nodeWorld, url: cloud.url, apiKey: API_KEY, tls: async () => ({ ca }) });
  };
  await using old = trusting();
  await old.check('x');
  issue();
  cloud.signal('SIGHUP');
  await cloud.logged(/Reloaded prohibited names/);
  await using renewed = trusting();
  await renewed.check('x');
  await using untrusting = new CloudClient({ world: nodeWorld, url: cloud.url, apiKey: API_KEY });
  await expect(untrusting.check('x')).rejects.toThrow(/self-signed certificate/);
});
