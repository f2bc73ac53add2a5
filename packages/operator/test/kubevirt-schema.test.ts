import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { crdOf, manifestYaml } from '@vmwright/runtime';
import { test as base } from '@vmwright/testbed/vitest';
import { expect } from 'vitest';
import { parse, stringify } from 'yaml';
import { VirtualMachine } from '../src/virtualmachine/resource.ts';
import { VMDiskImage } from '../src/vmdiskimage/resource.ts';

const SAMPLE = fileURLToPath(new URL('../../../config/samples/virtualmachine.yaml', import.meta.url));

/** `apply` returns kubectl's output, with the API server's message if it rejects the manifest. */
const test = base.extend('apply', { scope: 'file' }, async ({ cluster, namespace }) => {
  await cluster.apply(await manifestYaml([crdOf(VirtualMachine), crdOf(VMDiskImage)]));
  for (const { plural, group } of [VirtualMachine, VMDiskImage])
    await cluster.kubectl(['wait', '--for=condition=Established', `crd/${plural}.${group}`]);
  return async (manifest: string) => {
    const args = ['apply', '--dry-run=server', '-n', namespace, '-f', '-'];
    const { stdout, stderr } = await cluster.tryKubectl(args, { input: manifest });
    return stdout + stderr;
  };
});

const image = (spec: object) =>
  stringify({
    apiVersion: 'crd.pelotech.ot/v1alpha1',
    kind: 'VMDiskImage',
    metadata: { name: 'image' },
    spec: { secretRef: '', sourceType: 'blank', diskSize: '1Gi', ...spec },
  });

test('the manifest of the design proposal is accepted unchanged', async ({ apply }) => {
  expect(await apply(await readFile(SAMPLE, 'utf8'))).toContain('created (server dry run)');
});

test.for([
  { sourceType: 'blank' },
  { sourceType: 's3', url: 'https://s3.example.com/a.qcow2' },
  { sourceType: 's3', url: 'https://s3.example.com/bucket/404/a.qcow2', secretRef: 'keys' },
  { sourceType: 'registry', url: 'docker://quay.io/a/b:1', certConfigMap: 'cas' },
  { sourceType: 'http', url: 'http://example.com/a', checksum: `sha256:${'0'.repeat(64)}` },
  { retention: { pruneAfter: '72h30m', keep: false }, maxClones: 32 },
])('an image with %j is accepted', async (spec, { apply }) => {
  expect(await apply(image(spec))).toContain('created (server dry run)');
});

test.for<readonly [object, string]>([
  [{ sourceType: 's3' }, 'url is required unless sourceType is blank'],
  [{ sourceType: 'http', url: '' }, 'url is required unless sourceType is blank'],
  [{ sourceType: 'http', url: 'docker://a/b' }, 'url must begin with https:// or http://'],
  [{ sourceType: 's3', url: 's3://a/b' }, 'CDI does not accept s3://'],
  [{ sourceType: 'registry', url: 'https://a/b' }, 'url must begin with docker:// or oci-archive://'],
  [{ diskSize: '12 apples' }, 'must be a size such as 20Gi'],
  [{ diskSize: '0' }, 'must be a size such as 20Gi'],
  [{ diskSize: '-1Gi' }, 'must be a size such as 20Gi'],
  [
    { sourceType: 's3', url: 'https://a/b', checksum: `md5:${'0'.repeat(32)}` },
    'checksum is supported only for the sourceType http',
  ],
  [{ sourceType: 'http', url: 'http://a', checksum: 'md5:1' }, 'must be md5:, sha1:, sha256: or sha512:'],
  [{ retention: { pruneAfter: '3 weeks' } }, 'must be a time such as 72h or 30m'],
  [{ maxClones: 0 }, 'should be greater than or equal to 1'],
])('an image with %j is rejected: %s', async ([spec, message], { apply }) => {
  expect(await apply(image(spec))).toContain(message);
});

test.for<readonly [object, string]>([
  [{ resources: { cpu: '0.5', memory: '1Gi', diskSize: '1Gi' } }, 'must be a whole number of virtual CPUs'],
  [{ resources: { cpu: 2, memory: 'much', diskSize: '1Gi' } }, 'must be a size such as 20Gi'],
  [{ interfaces: [{ network: 'a', ipAddress: '10.0.0.1' }] }, 'must be an address with a prefix length'],
  [
    { users: [{ name: 'a', plain_text_passwd: 'x', passwordSecretRef: { name: 's' } }] },
    'set plain_text_passwd or passwordSecretRef, not both',
  ],
  [
    { vmDiskImageTemplate: { secretRef: '', sourceType: 's3', diskSize: '1Gi' } },
    'url is required unless sourceType is blank',
  ],
])('a VirtualMachine with %j is rejected: %s', async ([spec, message], { apply }) => {
  const sample = parse(await readFile(SAMPLE, 'utf8'));
  expect(await apply(stringify({ ...sample, spec: { ...sample.spec, ...spec } }))).toContain(message);
});

test('a changed image reference and a smaller disk are rejected in updates', async ({
  cluster,
  namespace,
  apply,
}) => {
  const sample = parse(await readFile(SAMPLE, 'utf8'));
  const manifest = (spec: object) => stringify({ ...sample, spec: { ...sample.spec, ...spec } });
  await cluster.kubectl(['apply', '-n', namespace, '-f', '-'], { input: manifest({}) });
  const resources = { ...sample.spec.resources, diskSize: '10Gi' };
  expect(await apply(manifest({ resources }))).toContain('diskSize cannot shrink');
  expect(await apply(manifest({ vmDiskImageRef: { name: 'other' } }))).toContain(
    'vmDiskImageRef cannot be changed',
  );
});
