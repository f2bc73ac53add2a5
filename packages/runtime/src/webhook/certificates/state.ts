import { createPrivateKey, X509Certificate } from 'node:crypto';
import { CertificateAuthority, type Issued } from '../../pki/certificate.ts';
import { certificatesIn, isSignedBy } from '../../pki/pem.ts';

/** Serving certificate with its CA. */
export interface Leaf extends Issued {
  readonly x509: X509Certificate;
  readonly authority: X509Certificate;
}

/** Certificates that the replicas share in a Secret. Missing or invalid parts are undefined. */
export interface CertificateState {
  /** All CAs to trust, the newest first. */
  readonly authorities: readonly X509Certificate[];
  /** Newest CA with its key. The keys of older CAs are not kept. */
  readonly signer: CertificateAuthority | undefined;
  readonly leaf: Leaf | undefined;
}

export const EMPTY_STATE: CertificateState = { authorities: [], signer: undefined, leaf: undefined };

/** Maximum number of trusted CAs. The oldest are dropped first, whether expired or not, because clocks may be wrong. */
export const MAX_AUTHORITIES = 8;

type Data = Readonly<Record<string, string>>;

/** Parses the data of the Secret. */
export function stateIn(data: Data = {}): CertificateState {
  const text = (key: string) => Buffer.from(data[key] ?? '', 'base64').toString();
  const authorities = certificatesIn(text('ca.crt')).filter(({ ca }) => ca);
  return {
    authorities,
    signer: signerOf(authorities[0], text('ca.key')),
    leaf: leafOf({ certificate: text('tls.crt'), key: text('tls.key') }, authorities),
  };
}

/** Formats the state as the data of the Secret. */
export function dataOf({ authorities, signer, leaf }: CertificateState): Data {
  const base64 = (text = '') => Buffer.from(text).toString('base64');
  return {
    'tls.crt': base64(leaf?.certificate),
    'tls.key': base64(leaf?.key),
    'ca.crt': base64(authorities.join('')),
    'ca.key': base64(signer?.key),
  };
}

/**
 * Restores a deleted or damaged state from the last known one, so that the certificates in use do not change.
 * @param known last known state
 */
export function repaired(
  found: CertificateState | undefined,
  known: CertificateState | undefined,
): CertificateState {
  if (found === undefined) return known ?? EMPTY_STATE;
  const complete = found.signer !== undefined && found.leaf !== undefined;
  if (complete || known?.signer === undefined || known.leaf === undefined) return found;
  return { ...known, authorities: mergeAuthorities(known.authorities, found.authorities) };
}

/** Merges two lists without duplicates, in order, and truncates the result to the maximum number of CAs. */
export function mergeAuthorities(
  first: readonly X509Certificate[],
  second: readonly X509Certificate[],
): X509Certificate[] {
  const byFingerprint = new Map([...first, ...second].map((each) => [each.fingerprint256, each]));
  return [...byFingerprint.values()].slice(0, MAX_AUTHORITIES);
}

/** Returns the certificate with its CA; undefined if it is invalid, or issued by none of these CAs. */
export function leafOf(issued: Issued, authorities: readonly X509Certificate[]): Leaf | undefined {
  try {
    const x509 = new X509Certificate(issued.certificate);
    const authority = authorities.find((each) => isSignedBy(x509, each));
    if (authority === undefined || !x509.checkPrivateKey(createPrivateKey(issued.key))) return undefined;
    return { ...issued, x509, authority };
  } catch {
    return undefined;
  }
}

function signerOf(newest: X509Certificate | undefined, key: string): CertificateAuthority | undefined {
  if (newest === undefined) return undefined;
  try {
    return CertificateAuthority.load({ certificate: newest.toString(), key });
  } catch {
    return undefined;
  }
}
