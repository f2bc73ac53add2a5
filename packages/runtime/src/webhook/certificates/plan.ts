import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { CertificateAuthority } from '../../pki/certificate.ts';
import { type CertificateState, type Leaf, leafOf, mergeAuthorities } from './state.ts';

const YEAR_MS = 365 * 86_400_000;

export interface Lifetimes {
  /** Lifetime of a CA in milliseconds. The next one is created when a fifth is left. @default ten years */
  readonly authorityMs: number;
  /** Lifetime of a serving certificate in milliseconds. It is renewed when a third is left. @default one year */
  readonly servingMs: number;
}

export const LIFETIMES: Lifetimes = { authorityMs: 10 * YEAR_MS, servingMs: YEAR_MS };

export interface PlanInput {
  readonly now: number;
  readonly lifetimes: Lifetimes;
  /** Common name that identifies the program's CAs. */
  readonly commonName: string;
  /** Names that the serving certificate must contain. */
  readonly names: readonly string[];
  /** Returns whether a CA was in every `caBundle` long enough for all API servers to observe it. */
  isSettled(authority: X509Certificate): boolean;
}

export interface Plan {
  readonly next: CertificateState;
  /** Reason for the change, for the log. */
  readonly reason: string;
}

/**
 * Plans the next state of the certificates; undefined if no change is needed.
 *
 * Guarantees: a valid serving certificate is replaced by a certificate of another CA only when `isSettled` returns true
 * for that CA. So a new CA is first only added to the trusted CAs, and issues certificates later.
 */
export function planCertificates(state: CertificateState, input: PlanInput): Plan | undefined {
  const { now, lifetimes, commonName } = input;
  const [newest] = state.authorities;
  const { signer } = state;
  if (signer === undefined || newest === undefined || isDue(newest, now, lifetimes.authorityMs / 5)) {
    const created = CertificateAuthority.create({ commonName }, validity(now, lifetimes.authorityMs));
    const x509 = new X509Certificate(created.certificate);
    const valid = usable(state.leaf, now);
    // The key of the old CA is dropped now. So the old CA issues a last certificate, which bridges the time until every
    // API server trusts the new CA.
    const canIssue = newest && !isDue(newest, now, 0) && (!valid || mayReplace(valid, newest, input));
    const last = canIssue && signer ? issueLeaf(signer, newest, [], input) : undefined;
    const leaf = last ?? valid ?? issueLeaf(created, x509, [], input);
    const next = { authorities: mergeAuthorities([x509], state.authorities), signer: created, leaf };
    return { next, reason: newest ? 'the CA is old or its key is lost' : 'there was no CA' };
  }
  const reason = reasonToIssue(state.leaf, newest, input);
  if (reason === undefined) return undefined;
  // Keep the present names: otherwise replicas with different names would replace the certificate again and again.
  const presentNames = state.leaf === undefined ? [] : namesIn(state.leaf.x509);
  return { next: { ...state, leaf: issueLeaf(signer, newest, presentNames, input) }, reason };
}

function reasonToIssue(
  leaf: Leaf | undefined,
  newest: X509Certificate,
  input: PlanInput,
): string | undefined {
  const { now, names, lifetimes } = input;
  if (leaf === undefined) return 'there was no serving certificate';
  if (isDue(leaf.x509, now, 0)) return 'the serving certificate has expired';
  if (!mayReplace(leaf, newest, input)) return undefined;
  if (leaf.authority.fingerprint256 !== newest.fingerprint256) return 'the new CA is trusted everywhere';
  if (isDue(leaf.x509, now, lifetimes.servingMs / 3)) return 'the serving certificate is old';
  if (!names.every((name) => isFor(leaf.x509, name))) return 'the serving certificate lacks a name';
  return undefined;
}

/** Returns whether a valid certificate may be replaced by a certificate of this CA. */
function mayReplace(leaf: Leaf, authority: X509Certificate, { isSettled }: PlanInput): boolean {
  return leaf.authority.fingerprint256 === authority.fingerprint256 || isSettled(authority);
}

function usable(leaf: Leaf | undefined, now: number): Leaf | undefined {
  return leaf !== undefined && isDue(leaf.x509, now, 0) ? undefined : leaf;
}

function issueLeaf(
  signer: CertificateAuthority,
  authority: X509Certificate,
  presentNames: readonly string[],
  { now, lifetimes, commonName, names: requiredNames }: PlanInput,
): Leaf | undefined {
  const names = [...new Set([...requiredNames, ...presentNames])];
  const notAfter = new Date(Math.min(now + lifetimes.servingMs, authority.validToDate.getTime()));
  // The certificate is valid from the same time as its CA, so that API servers with clocks that are behind accept it.
  const notBefore = authority.validFromDate;
  const subject = { commonName };
  return leafOf(signer.issue({ subject, usage: ['server'], names, notBefore, notAfter }), [authority]);
}

/**
 * Returns a validity that starts in the past. So even if the clock of this replica is ahead, the CA that it creates is
 * already valid for the other replicas.
 */
function validity(now: number, lifetimeMs: number) {
  return { notBefore: new Date(Math.max(now - lifetimeMs, 0)), notAfter: new Date(now + lifetimeMs) };
}

/** Returns whether at most `leftMs` of a certificate's lifetime are left. */
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
