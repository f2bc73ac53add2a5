import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer } from 'node:tls';
import { listen } from '@vmwright/core/testing';
import { expect, onTestFinished, test } from 'vitest';
import { CertificateAuthority } from './certificate.ts';

const validity = { notBefore: new Date('2026-01-01T00:00:00Z'), notAfter: new Date('2056-06-01T12:30:00Z') };
const ca = CertificateAuthority.create({ commonName: 'test authority' }, validity);

test('CertificateAuthority.create returns a self-signed CA certificate with the given validity', () => {
  const certificate = new X509Certificate(ca.certificate);
  expect(certificate.ca).toBe(true);
  expect(certificate.verify(certificate.publicKey)).toBe(true);
  expect(certificate.validFromDate).toEqual(validity.notBefore);
  expect(certificate.validToDate).toEqual(validity.notAfter);
});

test('a client certificate contains the user as common name and the groups as organizations', () => {
  const issued = ca.issue({
    ...validity,
    subject: { commonName: 'jane', organizations: ['system:masters', 'Ünïcode'] },
    usage: ['client'],
  });
  const certificate = new X509Certificate(issued.certificate);
  expect(certificate.subject).toBe('O=system:masters\nO=Ünïcode\nCN=jane');
  expect(certificate.issuer).toBe('CN=test authority');
  expect(certificate.checkIssued(new X509Certificate(ca.certificate))).toBe(true);
  expect(certificate.verify(new X509Certificate(ca.certificate).publicKey)).toBe(true);
  expect(certificate.ca).toBe(false);
});

test('subject alternative names can be DNS names, IPv4 addresses and IPv6 addresses', () => {
  const names = [
    'webhook.default.svc',
    '127.0.0.1',
    '::1',
    'fe80::1:2',
    '2001:db8:1:2:3:4:5:6',
    '::ffff:10.1.2.3',
  ];
  const { certificate } = ca.issue({
    ...validity,
    subject: { commonName: 'server' },
    usage: ['server'],
    names,
  });
  const read = new X509Certificate(certificate);
  expect(read.checkHost('webhook.default.svc')).toBe('webhook.default.svc');
  expect(read.checkHost('other.default.svc')).toBeUndefined();
  for (const address of names.slice(1)) expect(read.checkIP(address)).toBe(address);
});

test('issued certificates have unique serial numbers', () => {
  const serials = Array.from({ length: 50 }, () => {
    const { certificate } = ca.issue({ ...validity, subject: { commonName: 'x' }, usage: ['client'] });
    return new X509Certificate(certificate).serialNumber;
  });
  expect(new Set(serials).size).toBe(50);
});

test('TLS peers accept certificates of the CA and reject those of another CA', async () => {
  const server = ca.issue({
    ...validity,
    subject: { commonName: 's' },
    usage: ['server'],
    names: ['localhost'],
  });
  const client = ca.issue({ ...validity, subject: { commonName: 'c' }, usage: ['client'] });
  const listener = createServer(
    {
      cert: server.certificate,
      key: server.key,
      ca: ca.certificate,
      requestCert: true,
      rejectUnauthorized: true,
    },
    (socket) => socket.end(`hello ${socket.getPeerCertificate().subject.CN}`),
  );
  const port = await listen(listener, onTestFinished);
  const otherCa = CertificateAuthority.create({ commonName: 'test authority' }, validity);
  const dial = (trusted: string) =>
    connect({
      port,
      host: '127.0.0.1',
      servername: 'localhost',
      ca: trusted,
      cert: client.certificate,
      key: client.key,
    });

  const socket = dial(ca.certificate);
  const [data] = await once(socket, 'data');
  expect(String(data)).toBe('hello c');
  await expect(once(dial(otherCa.certificate), 'secureConnect')).rejects.toThrow(
    /self-signed|unable to verify/i,
  );
});

test('a loaded CA issues certificates like the original', () => {
  const loaded = CertificateAuthority.load({ certificate: ca.certificate, key: ca.key });
  const issued = loaded.issue({
    ...validity,
    subject: { commonName: 'x' },
    usage: ['server'],
    names: ['x.y.svc'],
  });
  const certificate = new X509Certificate(issued.certificate);
  expect(certificate.checkIssued(new X509Certificate(ca.certificate))).toBe(true);
  expect(certificate.verify(new X509Certificate(ca.certificate).publicKey)).toBe(true);
  expect(certificate.checkHost('x.y.svc')).toBe('x.y.svc');
});

test('CertificateAuthority.load rejects input that is not the certificate and the key of one CA', () => {
  const leaf = ca.issue({ ...validity, subject: { commonName: 'x' }, usage: ['server'] });
  const otherCa = CertificateAuthority.create({ commonName: 'test authority' }, validity);
  expect(() => CertificateAuthority.load(leaf)).toThrow('is not that of a certificate authority');
  expect(() => CertificateAuthority.load({ certificate: ca.certificate, key: otherCa.key })).toThrow(
    'do not belong to the same certificate authority',
  );
  expect(() => CertificateAuthority.load({ certificate: 'x', key: ca.key })).toThrow();
  expect(() => CertificateAuthority.load({ certificate: ca.certificate, key: '' })).toThrow();
});
