import { createPrivateKey, X509Certificate } from 'node:crypto';
import { CertificateAuthority, type Issued } from '../../pki/certificate.ts';
import { certificatesIn, isSignedBy } from '../../pki/pem.ts';

/** A certificate to serve with, and by whom it was issued. */
export interface Leaf extends Issued {
  readonly x509: X509Certificate;
  readonly authority: X509Certificate;
}

/** What the replicas share by their Secret. Parts that are missing or make no sense are undefined. */
export interface Held {
  /** All that are to be trusted, the newest first. */
  readonly authorities: readonly X509Certificate[];
  /** The newest, with its key. Older keys are gone. */
  readonly signer: CertificateAuthority | undefined;
  readonly leaf: Leaf | undefined;
}

export const NOTHING: Held = { authorities: [], signer: undefined, leaf: undefined };

/** The largest number of authorities trusted at a time. None is dropped for its age: clocks may be wrong. */
export const MOST_AUTHORITIES = 8;

type Data = Readonly<Record<string, string>>;

export function heldIn(data: Data = {}): Held {
  const text = (key: string) => Buffer.from(data[key] ?? '', 'base64').toString();
  const authorities = certificatesIn(text('ca.crt')).filter(({ ca }) => ca);
  return {
    authorities,
    signer: signerOf(authorities[0], text('ca.key')),
    leaf: leafOf({ certificate: text('tls.crt'), key: text('tls.key') }, authorities),
  };
}

export function dataOf({ authorities, signer, leaf }: Held): Data {
  const base64 = (text = '') => Buffer.from(text).toString('base64');
  return {
    'tls.crt': base64(leaf?.certificate),
    'tls.key': base64(leaf?.key),
    'ca.crt': base64(authorities.join('')),
    'ca.key': base64(signer?.key),
  };
}

/**
 * What to go on with. A Secret that was deleted or spoilt is restored from memory: what is trusted and served stays.
 * @param memory what it was when last seen
 */
export function mended(found: Held | undefined, memory: Held | undefined): Held {
  if (found === undefined) return memory ?? NOTHING;
  const whole = found.signer !== undefined && found.leaf !== undefined;
  if (whole || memory?.signer === undefined || memory.leaf === undefined) return found;
  return { ...memory, authorities: together(memory.authorities, found.authorities) };
}

/** Without doubles, and not more than are kept; those of the first list first. */
export function together(
  first: readonly X509Certificate[],
  second: readonly X509Certificate[],
): X509Certificate[] {
  const byFingerprint = new Map([...first, ...second].map((each) => [each.fingerprint256, each]));
  return [...byFingerprint.values()].slice(0, MOST_AUTHORITIES);
}

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
