import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { CertificateAuthority } from '../../pki/certificate.ts';
import { type Held, type Leaf, leafOf, together } from './held.ts';

const YEAR_MS = 365 * 86_400_000;

export interface Lifetimes {
  /** Of an authority; the next one is made when a fifth is left. @default ten years */
  readonly authorityMs: number;
  /** Of a serving certificate; renewed when a third is left. @default one year */
  readonly servingMs: number;
}

export const LIFETIMES: Lifetimes = { authorityMs: 10 * YEAR_MS, servingMs: YEAR_MS };

export interface Circumstances {
  readonly now: number;
  readonly lifetimes: Lifetimes;
  /** Of the authorities, by which they are known as ours. */
  readonly commonName: string;
  /** That the serving certificate must be good for. */
  readonly names: readonly string[];
  /** Whether API servers everywhere have trusted this authority for long enough to know it. */
  isSettled(authority: X509Certificate): boolean;
}

export interface Plan {
  readonly next: Held;
  /** For the log. */
  readonly because: string;
}

/**
 * What should be held instead; undefined when all is well.
 *
 * Guarantees: as long as the serving certificate is good, it is never replaced by one of an authority that is not
 * settled. So a new authority is first only trusted beside the old one, and issues later.
 */
export function planned(held: Held, circumstances: Circumstances): Plan | undefined {
  const { now, lifetimes, commonName } = circumstances;
  const [newest] = held.authorities;
  const { signer } = held;
  if (signer === undefined || newest === undefined || isDue(newest, now, lifetimes.authorityMs / 5)) {
    const created = CertificateAuthority.create({ commonName }, validity(now, lifetimes.authorityMs));
    const x509 = new X509Certificate(created.certificate);
    const good = usable(held.leaf, now);
    // The last that the old one issues before its key is gone lasts the longest until the new one is settled.
    const may = newest && !isDue(newest, now, 0) && (!good || mayReplace(good, newest, circumstances));
    const last = may && signer ? issued(signer, newest, [], circumstances) : undefined;
    const leaf = last ?? good ?? issued(created, x509, [], circumstances);
    const next = { authorities: together([x509], held.authorities), signer: created, leaf };
    return { next, because: newest ? 'the authority is old or its key is lost' : 'there was no authority' };
  }
  const because = reasonToIssue(held.leaf, newest, circumstances);
  if (because === undefined) return undefined;
  // The names it has are kept: replicas before and after a change of name would else replace it in turn.
  const more = held.leaf === undefined ? [] : namesIn(held.leaf.x509);
  return { next: { ...held, leaf: issued(signer, newest, more, circumstances) }, because };
}

function reasonToIssue(
  leaf: Leaf | undefined,
  newest: X509Certificate,
  circumstances: Circumstances,
): string | undefined {
  const { now, names, lifetimes } = circumstances;
  if (leaf === undefined) return 'there was no serving certificate';
  if (isDue(leaf.x509, now, 0)) return 'the serving certificate has expired';
  if (!mayReplace(leaf, newest, circumstances)) return undefined;
  if (leaf.authority.fingerprint256 !== newest.fingerprint256) return 'the new authority is known everywhere';
  if (isDue(leaf.x509, now, lifetimes.servingMs / 3)) return 'the serving certificate is old';
  if (!names.every((name) => isFor(leaf.x509, name))) return 'the serving certificate lacks a name';
  return undefined;
}

/** Whether a good certificate may be replaced by one of this authority. */
function mayReplace(leaf: Leaf, authority: X509Certificate, { isSettled }: Circumstances): boolean {
  return leaf.authority.fingerprint256 === authority.fingerprint256 || isSettled(authority);
}

function usable(leaf: Leaf | undefined, now: number): Leaf | undefined {
  return leaf !== undefined && isDue(leaf.x509, now, 0) ? undefined : leaf;
}

function issued(
  signer: CertificateAuthority,
  authority: X509Certificate,
  more: readonly string[],
  { now, lifetimes, commonName, names: wanted }: Circumstances,
): Leaf | undefined {
  const names = [...new Set([...wanted, ...more])];
  const notAfter = new Date(Math.min(now + lifetimes.servingMs, authority.validToDate.getTime()));
  // As long back as its authority, so that no wrong clock makes it one of the future.
  const notBefore = authority.validFromDate;
  const subject = { commonName };
  return leafOf(signer.issue({ subject, usage: ['server'], names, notBefore, notAfter }), [authority]);
}

/** Back as long as ahead: a replica whose clock is ahead must not make what is not valid yet for others. */
function validity(now: number, lifetimeMs: number) {
  return { notBefore: new Date(Math.max(now - lifetimeMs, 0)), notAfter: new Date(now + lifetimeMs) };
}

export function isDue(certificate: X509Certificate, now: number, leftMs: number): boolean {
  return now >= certificate.validToDate.getTime() - leftMs;
}

function isFor(certificate: X509Certificate, name: string): boolean {
  return (isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name)) !== undefined;
}

function namesIn({ subjectAltName = '' }: X509Certificate): string[] {
  return subjectAltName.split(', ').flatMap((entry) => {
    const [, name] = /^(?:DNS|IP Address):([^"]+)$/.exec(entry) ?? [];
    return name === undefined ? [] : [name];
  });
}
