import type { X509Certificate } from 'node:crypto';
import { certificatesIn } from '../../pki/pem.ts';
import { MOST_AUTHORITIES, together } from './held.ts';

/** The authorities of ours in a `caBundle`, and whether there is anything else in it. */
export function bundleOf(caBundle: string | undefined, commonName: string) {
  const all = certificatesIn(Buffer.from(caBundle ?? '', 'base64').toString());
  const ours = all.filter(({ subject }) => subject === `CN=${commonName}`);
  return { ours, foreign: all.length > ours.length };
}

/**
 * The `caBundle` that should be there; undefined when it is good as it is. Those of ours that are in it stay even if they
 * are not asked for: another replica, which knows more or less than we do, may still serve by them.
 */
export function bundleWith(
  caBundle: string | undefined,
  wanted: readonly X509Certificate[],
  commonName: string,
): string | undefined {
  const { ours, foreign } = bundleOf(caBundle, commonName);
  const has = new Set(ours.map(({ fingerprint256 }) => fingerprint256));
  if (!foreign && wanted.every(({ fingerprint256 }) => has.has(fingerprint256))) return undefined;
  return Buffer.from(together(wanted, ours).join('')).toString('base64');
}

/**
 * The `caBundle` that has these authorities of somebody else's issuer; undefined when it is good as it is. Those in it
 * stay: another replica may not have read the newest files yet, and would take turns with this one.
 */
export function bundleAdding(
  caBundle: string | undefined,
  wanted: readonly X509Certificate[],
): string | undefined {
  const present = certificatesIn(Buffer.from(caBundle ?? '', 'base64').toString());
  const has = new Set(present.map(({ fingerprint256 }) => fingerprint256));
  if (wanted.every(({ fingerprint256 }) => has.has(fingerprint256))) return undefined;
  // All that are wanted, however many: one that is left out would be missing at every look.
  const all = wanted.length > MOST_AUTHORITIES ? wanted : together(wanted, present);
  return Buffer.from(all.join('')).toString('base64');
}
