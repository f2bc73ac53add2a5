import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '@vmwright/testbed';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { writePackage } from '../build/build.ts';
import { ENVIRONMENT } from '../build/launch.ts';
import { DISTROLESS } from './base.ts';
import { writeImage } from './image.ts';
import { NODE } from './layer.ts';
import { digestOf, type Image, Layout } from './layout.ts';
import { type Entry, tar } from './tar.ts';

/** Annotated index or manifest of an image. */
interface Index {
  readonly annotations?: object;
  readonly manifests: readonly { readonly digest: string }[];
}

let folder: string;
let image: Image;

beforeAll(async () => {
  folder = await temporaryFolder('image');
  const operator = join(folder, 'operator');
  await writePackage('operator', operator);
  const base = writeBase(new Layout(join(folder, 'base')));
  const target = new Layout(join(folder, 'image'));
  writeImage(operator, { layout: base, name: 'base:test' }, target, 'vmwright:test');
  const [first] = target.images();
  if (first === undefined) throw new Error('the layout contains no image');
  image = first;
  mkdirSync(join(folder, 'root'));
  for (const layer of image.layers) {
    const archive = join(target.folder, 'blobs', layer.digest.replace(':', '/'));
    execFileSync('tar', ['-xf', archive, '-C', join(folder, 'root')]);
  }
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/**
 * Writes a base image for two platforms. It contains the Node that runs this test, and the libraries of this Node, in
 * the same places as the distroless image.
 */
function writeBase(layout: Layout): Layout {
  const libraries = execFileSync('ldd', [process.execPath], { encoding: 'utf8' }).match(/\/\S+/g) ?? [];
  const files = new Map(libraries.map((path) => [path.slice(1), readFileSync(path)]));
  files.set(NODE.slice(1), readFileSync(process.execPath));
  const entries = [...files].map(([path, content]): Entry => ({ path, mode: 0o755, content }));
  const archive = tar(entries);
  const layers = [layout.write('application/vnd.oci.image.layer.v1.tar', archive)];
  const rootfs = { type: 'layers', diff_ids: [digestOf(archive)] } as const;
  const config = {
    Env: ['SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt'],
    User: '0',
    WorkingDir: '/home',
  };
  const architectures = ['amd64', 'arm64'];
  layout.writeIndex(
    architectures.map((architecture) => ({ config: { os: 'linux', architecture, config, rootfs }, layers })),
    'base:test',
  );
  return layout;
}

/** Runs a program as the image's user, with the unpacked image as the root folder. */
function run(program: string, ...args: readonly string[]): string {
  const user = String(image.config.config?.User);
  const command = ['--userspec', user, join(folder, 'root'), program, ...args];
  const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' };
  if (process.getuid?.() === 0) return execFileSync('chroot', command, { encoding: 'utf8', env });
  // Without root, a user namespace can map only one user id, so the program runs as root of that namespace.
  const unprivileged = ['--user', '--map-root-user', 'chroot', ...command.slice(2)];
  return execFileSync('unshare', unprivileged, { encoding: 'utf8', env });
}

test('vmwright and ssvirt-vm-controller start from the unpacked image', () => {
  expect(run('/usr/local/bin/vmwright', '--help')).toMatch(/^Usage: vmwright /);
  expect(run('/usr/local/bin/vmwright', 'manifests')).toMatch(/^kind: CustomResourceDefinition$/m);
  expect(run('/usr/local/bin/ssvirt-vm-controller', '--help')).toMatch(/^Usage: ssvirt-vm-controller /);
});

test('the image runs vmwright as a numeric user and keeps the environment variables of the base image', () => {
  expect(image.config.config).toEqual({
    Env: [
      'SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt',
      'MALLOC_ARENA_MAX=1',
      'MALLOC_TRIM_THRESHOLD_=131072',
    ],
    User: '65532:65532',
    WorkingDir: '/',
    Entrypoint: ['/usr/local/bin/vmwright'],
    Cmd: ['run'],
  });
});

test('the image has all platforms of the base image', () => {
  const images = new Layout(join(folder, 'image')).images();
  expect(images.map(({ config }) => config.architecture)).toEqual(['amd64', 'arm64']);
  for (const { config, layers } of images) expect(config.rootfs.diff_ids).toHaveLength(layers.length);
});

test('the index and its images name the base image with its digest', () => {
  const target = new Layout(join(folder, 'image'));
  const digest = new Layout(join(folder, 'base')).digest();
  const read = (each: string): Index => JSON.parse(Buffer.from(target.blob({ digest: each })).toString());
  const index = read(target.digest());
  const annotations = {
    'org.opencontainers.image.base.name': 'base:test',
    'org.opencontainers.image.base.digest': digest,
  };
  expect(index.annotations).toEqual(annotations);
  expect(index.manifests.map((each) => read(each.digest).annotations)).toEqual([annotations, annotations]);
});

test('the folder of vmwright in the image contains the bundled programs and no node_modules', () => {
  const root = join(folder, 'root/usr/local/lib/vmwright');
  expect(readdirSync(root).toSorted()).toEqual(['LICENSE', 'bin', 'package.json']);
});

test('the Containerfile describes the same image as `make image`', () => {
  const lines = readFileSync(new URL('../../Containerfile', import.meta.url), 'utf8').split('\n');
  const { User, WorkingDir, Entrypoint, Cmd } = image.config.config ?? {};
  const variables = Object.entries(ENVIRONMENT).map(([name, value]) => `${name}=${value}`);
  expect(lines).toEqual(
    expect.arrayContaining([
      `ARG BASE=${DISTROLESS}`,
      `ENV ${variables.join(' ')}`,
      `WORKDIR ${WorkingDir}`,
      `USER ${User}`,
      `ENTRYPOINT ${JSON.stringify(Entrypoint)}`,
      `CMD ${JSON.stringify(Cmd)}`,
    ]),
  );
});

test('a base image with a damaged blob is rejected', () => {
  const layout = new Layout(join(folder, 'damaged'));
  const blob = layout.write('application/vnd.oci.image.layer.v1.tar', Buffer.from('layer'));
  writeFileSync(join(layout.folder, 'blobs', blob.digest.replace(':', '/')), 'other');
  expect(() => layout.blob(blob)).toThrow(/does not match its digest; download the image again/);
});
