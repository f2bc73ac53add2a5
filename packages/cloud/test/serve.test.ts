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

describe('what is in the way of a start is said in a sentence, and ends with 1:', () => {
  test.for([
    [['serve', '--prot', '1'], keys, "Unknown option '--prot'; see vmwright-cloud --help\n"],
    [
      ['serve', '--driver', 'xen'],
      keys,
      '--driver is simulated or qemu, not "xen"; see vmwright-cloud --help\n',
    ],
    [
      ['serve', '--config', '/nowhere'],
      keys,
      "the config cannot be read: ENOENT: no such file or directory, open '/nowhere'\n",
    ],
    [
      ['serve', '--data', '/nowhere/x'],
      {},
      'there are no API keys: name a file with one a line by --keys, or set CLOUD_API_KEYS\n',
    ],
    [
      ['serve', '--prohibited', '/nowhere'],
      keys,
      "the prohibited names cannot be read: ENOENT: no such file or directory, open '/nowhere'\n",
    ],
    [
      ['serve', '--tls-cert', '/nowhere', '--tls-key', '/nowhere'],
      keys,
      "the certificate cannot be used: ENOENT: no such file or directory, open '/nowhere'\n",
    ],
    [
      ['serve', '--tls-cert', '/dev/null', '--tls-key', '/dev/null'],
      keys,
      'the certificate cannot be used: error:0480006C:PEM routines::no start line\n',
    ],
    [
      ['serve', '--data', '/nowhere/x'],
      keys,
      '/nowhere/x cannot be used: unable to open database file; its folder must be there, and ours to write\n',
    ],
  ] as const)('%j', ([args, env, stderr]) => {
    expect(run(args, env)).toEqual({ status: 1, stdout: '', stderr });
  });

  test('data that another process serves, a port that is taken, machines of another driver', async () => {
    await using cloud = await CloudProcess.start();
    const common = ['serve', '--listen', '127.0.0.1:0'];
    expect(run([...common, '--data', cloud.data], keys).stderr).toBe(
      `${cloud.data} is in use by another vmwright-cloud; a file is served by one process at a time\n`,
    );
    const other = join(cloud.dir, 'other.sqlite');
    const { host } = new URL(cloud.url);
    const taken = run(['serve', '--listen', host, '--data', other], keys);
    expect(taken.status).toBe(1);
    expect(taken.stderr).toBe(`cannot serve on ${host}: listen EADDRINUSE: address already in use ${host}\n`);
    await cloud.client.create({ name: 'x' }, 'k');
    await cloud.kill();
    expect(run([...common, '--data', cloud.data, '--driver', 'qemu'], keys).stderr).toBe(
      `${cloud.data} has servers of the driver simulated; start with --driver simulated, or with another --data\n`,
    );
  });

  test('no QEMU for the driver that needs it', async () => {
    const dir = await temporaryFolder('serve');
    const config = join(dir, 'config.json');
    writeFileSync(config, '{"qemu":{"binary":"qemu-system-nowhere"}}');
    const args = ['serve', '--driver', 'qemu', '--data', join(dir, 'x.sqlite'), '--config', config];
    expect(run(args, keys)).toEqual({
      status: 1,
      stdout: '',
      stderr:
        'the driver qemu needs qemu-system-nowhere, which is not there; install it, or name another by qemu.binary in the --config file\n',
    });
  });
});

test('--help shows how it is used', () => {
  expect(run(['--help'])).toMatchObject({
    status: 0,
    stderr: '',
    stdout: expect.stringMatching(/^vmwright-cloud serve/),
  });
});

describe('SIGTERM', () => {
  test('answers what is under way, takes nothing more, and ends with 0', async () => {
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
    // What was told before a stop in order is not told again.
    expect(cloud.audit.filter(({ event }) => event === 'created')).toHaveLength(1);
  });

  test('does not wait for idle connections, nor for a machine', async () => {
    const config = { simulated: { stopMs: { min: 3_600_000, max: 3_600_000 } } };
    await using cloud = await CloudProcess.start({ config });
    const { id } = await cloud.client.create({ name: 'x' }, 'k'); // its connection stays open
    await cloud.client.delete(id);
    cloud.signal('SIGTERM');
    expect(await cloud.exited()).toBe(0);
  });
});

describe('SIGHUP', () => {
  test('lets in the keys of the file as it is now', async () => {
    const file = join(await temporaryFolder('serve'), 'keys');
    writeFileSync(file, 'the-old-key-0123456789\n');
    await using cloud = await CloudProcess.start({ args: ['--keys', file] });
    const status = async (key: string) =>
      (await cloud.fetch('/servers', { headers: { authorization: `Bearer ${key}` } })).status;
    expect(await status('the-old-key-0123456789')).toBe(200);
    writeFileSync(file, 'the-new-key-0123456789\n');
    cloud.signal('SIGHUP');
    await cloud.logged(/the prohibited names were read again/); // after the keys
    expect([await status('the-old-key-0123456789'), await status('the-new-key-0123456789')]).toEqual([
      401, 200,
    ]);
  });

  test('that finds something wrong says so, and all stays as it was', async () => {
    const file = join(await temporaryFolder('serve'), 'keys');
    writeFileSync(file, 'the-old-key-0123456789\n');
    await using cloud = await CloudProcess.start({ args: ['--keys', file], prohibited: ['root'] });
    writeFileSync(file, 'short\n');
    writeFileSync(cloud.prohibited, 'a/b\n');
    cloud.signal('SIGHUP');
    await cloud.logged(/the prohibited names stay as they were/);
    expect(cloud.log).toContain(`${file}:1: a key has at least 16 characters, this one 5`);
    const headers = { authorization: 'Bearer the-old-key-0123456789' };
    expect((await cloud.fetch('/check/root', { headers })).status).toBe(403);
  });
});

test('prohibited names are read again when their file changes', async () => {
  await using cloud = await CloudProcess.start();
  await cloud.client.check('root');
  writeFileSync(cloud.prohibited, 'root  it is the superuser’s\n');
  await cloud.logged(/the prohibited names were read again/);
  await expect(cloud.client.check('root')).rejects.toThrow(
    'The name "root" is prohibited: it is the superuser’s.',
  );
});

test('no log has a key in it, right or wrong', async () => {
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

test('the log level keeps requests out of the log, but not where it listens', async () => {
  await using cloud = await CloudProcess.start({ args: ['--log-level', 'error'] });
  await cloud.client.check('x');
  cloud.signal('SIGTERM');
  await cloud.exited();
  expect(cloud.log.trim().split('\n')).toHaveLength(1);
  expect(cloud.log).toContain(`"msg":"listening","url":"${cloud.url}"`);
});

test('TLS: a client that trusts the certificate gets in; SIGHUP takes up a new one', async () => {
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
  await cloud.logged(/the prohibited names were read again/);
  await using renewed = trusting();
  await renewed.check('x');
  await using stranger = new CloudClient({ world: nodeWorld, url: cloud.url, apiKey: API_KEY });
  await expect(stranger.check('x')).rejects.toThrow(/self-signed certificate/);
});
