import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Part } from '../process/part.ts';
import { temporaryFolder } from '../process/run-supervisor.ts';
import { canary, credentialsIn } from './canary.ts';
import { CanarySearches } from './searches.ts';

/** A token, a key and a hash in the format of real ones. */
const TOKEN = `eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.eyJpc3MiOiJrdWJlIn0.${'a'.repeat(43)}`;
const KEY = '-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\n-----END EC PRIVATE KEY-----\n';
const HASH = `$6$saltsaltsaltsalt$${'a'.repeat(86)}`;

describe('credentialsIn', () => {
  test('credentialsIn finds a canary anywhere in a text, and returns its name', () => {
    const key = canary('cloud-key');
    expect(credentialsIn(`{"msg":"GET /servers","authorization":"Bearer ${key}"}`)).toEqual(['cloud-key']);
    expect(credentialsIn(`postgres://user:${canary('database-password')}@host/db ${key}`)).toEqual([
      'database-password',
      'cloud-key',
    ]);
  });

  test.for(['', 'a', 'ab', 'abc', 'user:'])('credentialsIn finds a canary in base64 after "%s"', (before) => {
    const text = Buffer.from(`${before}${canary('machine-password')}${before}`).toString('base64');
    expect(credentialsIn(`Basic ${text}`)).toEqual(['canary in base64']);
  });

  test.each([
    [TOKEN, 'token of a service account'],
    [KEY, 'private key'],
    [JSON.stringify({ key: KEY }), 'private key'],
    [Buffer.from(KEY).toString('base64'), 'private key in base64'],
    [Buffer.from(KEY.replaceAll('EC ', '')).toString('base64'), 'private key in base64'],
    [Buffer.from(KEY.replaceAll('EC ', 'RSA ')).toString('base64'), 'private key in base64'],
    [`passwd: "${HASH}"`, 'hashed password'],
  ])('credentialsIn finds a credential in %s', (text, name) => {
    expect(credentialsIn(text)).toEqual([name]);
    expect(credentialsIn(Buffer.from(text))).toEqual([name]);
  });
});

test('credentialsIn finds nothing in certificates, public keys and ordinary log lines', () => {
  const certificate = KEY.replaceAll('EC PRIVATE KEY', 'CERTIFICATE');
  const line = '{"level":"info","msg":"Created server","cost":"$6$","canary":true}';
  for (const text of [certificate, Buffer.from(certificate).toString('base64'), line, ''])
    expect(credentialsIn(text)).toEqual([]);
});

describe('searches of a run', () => {
  async function begin(): Promise<{ searches: CanarySearches; folder: string }> {
    const folder = await temporaryFolder('canaries');
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    return { searches: new CanarySearches(folder), folder };
  }

  test('the report throws an error that names each credential and where it appeared', async () => {
    const { searches, folder } = await begin();
    const log = join(folder, 'operator.log');
    writeFileSync(log, `{"msg":"Connecting","password":"${canary('vcenter-password')}"}\n`);
    searches.file('the log of operator', log);
    searches.text('the arguments of operator', `run --key=${canary('cloud-key')}`);
    searches.text('the output of vmwright status', 'all is well');
    expect(() => searches.report()).toThrow(
      /^Credentials appeared .*:\nthe log of operator contains: vcenter-password \(see .*the-log-of-operator-.*\.log\)\nthe arguments of operator contains: cloud-key$/,
    );
    expect(readdirSync(folder).filter((name) => name.startsWith('the-log-of-operator'))).toHaveLength(1);
  });

  test('the report returns the number of searched texts if no credential was found', async () => {
    const { searches, folder } = await begin();
    writeFileSync(join(folder, 'a.log'), 'x'.repeat(2_000_000));
    searches.file('a log', join(folder, 'a.log'));
    searches.file('a log that does not exist', join(folder, 'b.log'));
    expect(searches.report()).toBe(
      'Searched 1 logs, outputs and argument lists (2.0 MB) for credentials: none found.',
    );
  });

  test('the searches include only the logs and arguments of our own programs', async () => {
    const { searches, folder } = await begin();
    vi.stubEnv('VMWRIGHT_CANARY_SEARCHES', folder);
    onTestFinished(() => void vi.unstubAllEnvs());
    const script = 'console.log(process.env.SECRET); setInterval(() => undefined, 1_000)';
    for (const [name, isOurs] of [
      ['ours', true],
      ['theirs', false],
    ] as const) {
      const dir = await temporaryFolder(name);
      await using _ = await Part.start({
        name,
        isOurs,
        dir,
        command: process.execPath,
        args: ['-e', script, '--', canary(`argument-of-${name}`)],
        env: { SECRET: canary(`log-of-${name}`) },
        ready: async () => readFileSync(join(dir, `${name}.log`), 'utf8') !== '',
      });
    }
    expect(() => searches.report()).toThrow(
      /^Credentials .*:\nthe arguments of ours contains: argument-of-ours\nthe log of ours contains: log-of-ours \(see [^\n]*$/,
    );
  });
});
