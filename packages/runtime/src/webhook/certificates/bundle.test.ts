import { X509Certificate } from 'node:crypto';
import { expect, test } from 'vitest';
import { CertificateAuthority } from '../../pki/certificate.ts';
import { certificatesIn } from '../../pki/pem.ts';
import { bundleAdding } from './bundle.ts';

const validity = { notBefore: new Date('2020-01-01'), notAfter: new Date('2120-01-01') };
const createAuthorities = (count: number, prefix: string) =>
  Array.from({ length: count }, (_, index) => {
    const { certificate } = CertificateAuthority.create({ commonName: `${prefix}${index}` }, validity);
    return new X509Certificate(certificate);
  });
const bundle = (all: readonly X509Certificate[]) => Buffer.from(all.join('')).toString('base64');
const subjects = (caBundle: string | undefined) =>
  certificatesIn(Buffer.from(caBundle ?? '', 'base64').toString()).map(({ subject }) => subject);

test('bundleAdding puts missing CAs before the present ones', () => {
  const [old, next] = [createAuthorities(2, 'old'), createAuthorities(1, 'new')];
  const added = bundleAdding(bundle(old), next);
  expect(subjects(added)).toEqual(['CN=new0', 'CN=old0', 'CN=old1']);
  expect(bundleAdding(added, next)).toBeUndefined();
  expect(bundleAdding(added, old)).toBeUndefined();
  expect(subjects(bundleAdding(undefined, next))).toEqual(['CN=new0']);
  expect(bundleAdding(undefined, [])).toBeUndefined();
});

test('bundleAdding adds all new CAs, even if they exceed the limit, and keeps old CAs only up to the limit', () => {
  const [old, large] = [createAuthorities(6, 'old'), createAuthorities(12, 'root')];
  const added = bundleAdding(bundle(old), large);
  expect(subjects(added)).toEqual(large.map(({ subject }) => subject));
  expect(bundleAdding(added, large)).toBeUndefined();
  expect(subjects(bundleAdding(bundle(old), large.slice(0, 5)))).toHaveLength(8);
});
