import { X509Certificate } from 'node:crypto';

const BLOCK = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** Returns all certificates in a PEM text. Skips invalid blocks. */
export function certificatesIn(pem: string): X509Certificate[] {
  return [...pem.matchAll(BLOCK)].flatMap(([block]) => {
    try {
      return [new X509Certificate(block)];
    } catch {
      return [];
    }
  });
}

/** Returns whether `authority` issued and signed `certificate`. */
export function isSignedBy(certificate: X509Certificate, authority: X509Certificate): boolean {
  return certificate.checkIssued(authority) && certificate.verify(authority.publicKey);
}
