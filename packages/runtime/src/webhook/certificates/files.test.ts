import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { collectingLogger } from '@vmwright/core';
import { test as base, expect } from 'vitest';
import { CertificateAuthority, type Issued } from '../../pki/certificate.ts';
import { CertificateFiles } from './files.ts';
import type { TrustTarget } from './trust.ts';

const validity = { notBefore: new Date('2020-01-01'), notAfter: new Date('2030-06-01') };
const [one, two] = ['one', 'two'].map((commonName) => CertificateAuthority.create({ commonName }, validity));
if (one === undefined || two === undefined) throw new Error('no authorities');
const leaf = (authority: CertificateAuthority, names = ['a.b.svc']) =>
  authority.issue({ ...validity, subject: { commonName: 'x' }, usage: ['server'], names });

/** Directory like a Secret mounted by the kubelet: files are links into a directory that is replaced atomically. */
class Mount {
  readonly folder: string;
  #version = 0;

  constructor(folder: string) {
    this.folder = folder;
  }

  async write(files: Readonly<Record<string, string>>): Promise<void> {
    this.#version += 1;
    const name = `..version-${this.#version}`;
    await mkdir(join(this.folder, name));
    for (const [file, text] of Object.entries(files)) await writeFile(join(this.folder, name, file), text);
    await symlink(name, join(this.folder, '..next'));
    await rename(join(this.folder, '..next'), join(this.folder, '..data'));
    for (const file of ['tls.crt', 'tls.key', 'ca.crt'])
      await symlink(join('..data', file), join(this.folder, file)).catch(() => undefined); // the link may exist already
  }

  issued({ certificate, key }: Issued, ca?: string): Promise<void> {
    return this.write({ 'tls.crt': certificate, 'tls.key': key, ...(ca !== undefined && { 'ca.crt': ca }) });
  }
}

const test = base
  .extend('mount', async ({ task: _ }, { onCleanup }) => {
    const folder = await mkdtemp(join(tmpdir(), 'vmwright-certificates-'));
    onCleanup(() => rm(folder, { recursive: true }));
    return new Mount(folder);
  })
  .extend('env', ({ mount }) => {
    const { logger, lines } = collectingLogger();
    const served: Issued[] = [];
    const expiries: [string, Date][] = [];
    const reads = { succeeded: 0, failed: 0 };
    const files = new CertificateFiles({
      client: { get: () => Promise.reject(), jsonPatch: () => Promise.reject() },
      logger,
      metrics: {
        read: (succeeded) => {
          reads[succeeded ? 'succeeded' : 'failed'] += 1;
        },
        expires: (certificate, at) => void expiries.push([certificate, at]),
      },
      folder: mount.folder,
      names: ['a.b.svc'],
      trustTargets: [] satisfies TrustTarget[],
      serve: (certificate) => void served.push(certificate),
    });
    return { files, lines, served, expiries, reads };
  });
const { signal } = new AbortController();

test('a certificate is served as soon as its files exist, and is replaced when the mounted Secret changes', async ({
  mount,
  env,
}) => {
  const { files, served, expiries } = env;
  await files.obtain(signal);
  expect(files.serving).toBeUndefined();
  const [first, second] = [leaf(one), leaf(two)];
  await mount.issued(first, one.certificate);
  await files.obtain(signal);
  await files.obtain(signal);
  expect(served).toEqual([first]);
  expect(expiries).toEqual([
    ['serving', validity.notAfter],
    ['authority', validity.notAfter],
  ]);
  await mount.issued(second);
  await files.obtain(signal);
  expect(served).toEqual([first, second]);
  expect(files.serving).toEqual(second);
  expect(env.reads).toEqual({ succeeded: 3, failed: 1 });
});

test.for([
  [
    'the key of another certificate',
    (good: Issued) => ({ 'tls.crt': good.certificate, 'tls.key': leaf(one).key }),
  ],
  ['no key', (good: Issued) => ({ 'tls.crt': good.certificate })],
  ['an empty certificate', (good: Issued) => ({ 'tls.crt': '', 'tls.key': good.key })],
  [
    'a truncated certificate',
    (good: Issued) => ({ 'tls.crt': good.certificate.slice(0, 200), 'tls.key': good.key }),
  ],
] as const)(
  'the last valid certificate stays in use if a new version of the files contains %s',
  async ([, breakFiles], { mount, env }) => {
    const { files, served, lines } = env;
    const good = leaf(one);
    await mount.issued(good);
    await files.obtain(signal);
    await mount.write(breakFiles(good));
    await files.obtain(signal);
    expect(files.serving).toEqual(good);
    expect(served).toEqual([good]);
    expect(lines.at(-1)).toMatchObject({
      level: 'warn',
      msg: 'Reading the webhook certificate failed, retrying',
    });
    expect(JSON.stringify(lines)).not.toContain('PRIVATE KEY');
  },
);

test('a certificate without the name of the server is served with a warning', async ({ mount, env }) => {
  await mount.issued(leaf(one, ['other.svc']));
  await env.files.obtain(signal);
  expect(env.served).toHaveLength(1);
  expect(env.lines).toContainEqual(expect.objectContaining({ level: 'warn', missing: ['a.b.svc'] }));
});
