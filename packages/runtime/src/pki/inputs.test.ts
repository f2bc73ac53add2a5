import { X509Certificate } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { CertificateAuthority } from './certificate.ts';
import { CertificateInputError, type LeafOptions } from './inputs.ts';

const validity = { notBefore: new Date('2026-01-01'), notAfter: new Date('2027-01-01') };
const ca = CertificateAuthority.create({ commonName: 'test' }, validity);
const leaf = (more: Partial<LeafOptions>) =>
  ca.issue({ ...validity, subject: { commonName: 'x' }, usage: ['server'], ...more });

describe('invalid inputs', () => {
  test.for([
    ['bücher.example', 'its ASCII form is xn--bcher-kva.example'],
    ['a\0b', 'is not a DNS name'],
    ['', 'is not a DNS name'],
    ['a..b', 'is not a DNS name'],
    ['-a.example', 'is not a DNS name'],
    ['a b', 'is not a DNS name'],
    ['a.*.example', 'is not a DNS name'],
    ['a,DNS:b', 'is not a DNS name'],
    [`${'a'.repeat(64)}.example`, 'is not a DNS name'],
    [Array(64).fill('abc').join('.'), 'is not a DNS name'],
    ['fe80::1%eth0', 'has a zone'],
  ] as const)('the CA rejects the alternative name %j', ([name, message]) => {
    expect(() => leaf({ names: [name] })).toThrow(CertificateInputError);
    expect(() => leaf({ names: [name] })).toThrow(message);
  });

  test.for([
    ['', '1 to 64 characters'],
    ['x'.repeat(200), '1 to 64 characters'],
    ['a\0b', 'control character'],
    ['a\nb', 'control character'],
    ['\ud800', 'not valid Unicode'],
  ] as const)('the CA rejects the common name %j', ([commonName, message]) => {
    expect(() => leaf({ subject: { commonName } })).toThrow(message);
    expect(() => CertificateAuthority.create({ commonName }, validity)).toThrow(message);
    expect(() => leaf({ subject: { commonName: 'x', organizations: [commonName] } })).toThrow(message);
  });

  test.for([
    ['1949-12-31T23:59:59Z', '2026-01-01', 'years from 1950 to 9999'],
    ['2026-01-01', '+010000-01-01T00:00:00Z', 'years from 1950 to 9999'],
    ['nonsense', '2026-01-01', 'is not a date'],
    ['2026-01-01', '2026-01-01', 'notAfter must be later than notBefore'],
    ['2026-01-02', '2026-01-01', 'notAfter must be later than notBefore'],
  ] as const)('the CA rejects a validity from %s to %s', ([from, to, message]) => {
    const times = { notBefore: new Date(from), notAfter: new Date(to) };
    expect(() => leaf(times)).toThrow(message);
    expect(() => CertificateAuthority.create({ commonName: 'x' }, times)).toThrow(message);
  });

  test('the CA rejects a certificate without a usage', () => {
    expect(() => leaf({ usage: [] })).toThrow('needs at least one usage');
  });

  test('CertificateAuthority.load rejects a CA with a key that is not ECDSA P-256', () => {
    expect(() => CertificateAuthority.load(P384)).toThrow('is not an ECDSA P-256 key');
  });
});

describe('encoding', () => {
  test.for([
    ['1950-01-01T00:00:00Z', '2049-12-31T23:59:59Z'],
    ['1999-12-31T23:59:59Z', '2050-01-01T00:00:00Z'],
    ['2050-01-01T00:00:00Z', '9999-12-31T23:59:59Z'],
  ])('OpenSSL reads a validity from %s to %s as it was issued', ([from = '', to = '']) => {
    const times = { notBefore: new Date(from), notAfter: new Date(to) };
    const read = new X509Certificate(leaf(times).certificate);
    expect([read.validFromDate, read.validToDate]).toEqual([times.notBefore, times.notAfter]);
  });

  test('OpenSSL reads names of the maximum length and with special characters as they were issued', () => {
    const commonName = 'ü'.repeat(64);
    const names = ['*.example', 'a_b.example', 'xn--bcher-kva.example', `${'a'.repeat(63)}.example`, '::1'];
    const read = new X509Certificate(leaf({ subject: { commonName }, names }).certificate);
    expect(read.subject).toBe(`CN=${commonName}`);
    expect(read.subjectAltName?.split(', ')).toEqual([
      ...names.slice(0, -1).map((name) => `DNS:${name}`),
      'IP Address:0:0:0:0:0:0:0:1',
    ]);
  });
});

/** CA with a P-384 key, created with OpenSSL. */
const P384 = {
  certificate: `-----BEGIN CERTIFICATE-----
MIIBsjCCATigAwIBAgIUPM+2TwxTSotm8ZeGecvAk48w1s8wCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEcDM4NDAgFw0yNjExMTcwMjU4MTlaGA8yMTI2MTAyNDAyNTgx
OVowDzENMAsGA1UEAwwEcDM4NDB2MBAGByqGSM49AgEGBSuBBAAiA2IABNugG9bd
vkp9EECpex8OYsHUHIjac714uYHjD+V3iM2RnFNYLXxSUt2k5T2DHhzJ3+gccskw
RFueecKsHY1GAqcGcugxiz6xajCgxMq7aqKknCw9wAFXNz7TDXMEufb436NTMFEw
HQYDVR0OBBYEFEf7DbsJOPFP1OKK1iPCnyFsCkKcMB8GA1UdIwQYMBaAFEf7DbsJ
OPFP1OKK1iPCnyFsCkKcMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDaAAw
ZQIwHbWrK7vvl3MesOI2Nl8qMaGp3YkhXYhWDeTUOxOt6DIjf0u02gYCmrznf7ym
/LmoAjEAojD39w6APJ6xq0F3tWpqrBr8D9Xy1zbpuMHQXgQ32e3lXxdday5yeJxL
oB8YTMNY
-----END CERTIFICATE-----
`,
  key: `-----BEGIN PRIVATE KEY-----
MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDA19q1seI3Cy8LCAA5/
V6uKo87unmq7hIqCyoS8lc3G0VtNMzhFsu7s2w/bwhiksaOhZANiAATboBvW3b5K
fRBAqXsfDmLB1ByI2nO9eLmB4w/ld4jNkZxTWC18UlLdpOU9gx4cyd/oHHLJMERb
nnnCrB2NRgKnBnLoMYs+sWowoMTKu2qipJwsPcABVzc+0w1zBLn2+N8=
-----END PRIVATE KEY-----
`,
};
