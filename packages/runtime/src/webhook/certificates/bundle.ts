import type { X509Certificate } from 'node:crypto';
import { certificatesIn } from '../../pki/pem.ts';
import { MAX_AUTHORITIES, mergeAuthorities } from './state.ts';

/** Returns the program's own CAs in a `caBundle`, and whether it contains any other certificate. */
export function bundleOf(caBundle: string | undefined, commonName: string) {
  const all = certificatesIn(Buffer.from(caBundle ?? '', 'base64').toString());
  const ours = all.filter(({ subject }) => subject === `CN=${commonName}`);
  return { ours, foreign: all.length > ours.length };
}

/**
 * Returns the `caBundle` with the wanted CAs and without foreign ones; undefined if no change is needed. Keeps the
 * program's other CAs, because another replica may still serve a certificate that one of them issued.
 */
export function bundleWith(
  caBundle: string | undefined,
  wanted: readonly X509Certificate[],
  commonName: string,
): string | undefined {
  const { ours, foreign } = bundleOf(caBundle, commonName);
  const has = new Set(ours.map(({ fingerprint256 }) => fingerprint256));
  if (!foreign && wanted.every(({ fingerprint256 }) => has.has(fingerprint256))) return undefined;
  return Buffer.from(mergeAuthorities(wanted, ours).join('')).toString('base64');
}

/**
 * Returns the `caBundle` with additional CAs of an external issuer; undefined if no change is needed. Keeps the present
 * CAs, up to `MAX_AUTHORITIES`. Otherwise replicas that still have the issuer's old `ca.crt` would remove the new CAs
 * again and again.
 */
export function bundleAdding(
  caBundle: string | undefined,
  wanted: readonly X509Certificate[],
): string | undefined {
  const present = certificatesIn(Buffer.from(caBundle ?? '', 'base64').toString());
  const has = new Set(present.map(({ fingerprint256 }) => fingerprint256));
  if (wanted.every(({ fingerprint256 }) => has.has(fingerprint256))) return undefined;
  // Never truncate the wanted CAs: a dropped CA would be missing at every poll, and every poll would write the
  // `caBundle`.
  const all = wanted.length > MAX_AUTHORITIES ? wanted : mergeAuthorities(wanted, present);
  return Buffer.from(all.join('')).toString('base64');
}
