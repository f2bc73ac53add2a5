import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';

export interface Subject {
  readonly commonName: string;
  /** Organizations; Kubernetes maps them to the groups of a client. */
  readonly organizations?: readonly string[];
}

export interface Validity {
  readonly notBefore: Date;
  readonly notAfter: Date;
}

export interface LeafOptions extends Validity {
  readonly subject: Subject;
  readonly usage: readonly ('server' | 'client')[];
  /** Subject alternative names: DNS names and IP addresses of a server. */
  readonly names?: readonly string[];
}

/** Thrown when an input cannot be encoded in a certificate (RFC 5280), or would be misread by clients. */
export class CertificateInputError extends Error {
  readonly code = 'CERTIFICATE_INPUT';

  constructor(message: string) {
    super(message);
    this.name = 'CertificateInputError';
  }
}

/** Maximum length of a common name or organization (RFC 5280, `ub-common-name` and `ub-organization-name`). */
const MAX_NAME_LENGTH = 64;
const MAX_DNS_NAME_LENGTH = 253;
/**
 * Pattern of a label of a DNS name. RFC 5280 forbids underscores, but host names on private networks have them and Go
 * accepts them.
 */
const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/i;
const CONTROL = /\p{Cc}/u;

/** @throws CertificateInputError */
export function assertLeafOptions({ subject, usage, names = [], ...validity }: LeafOptions): void {
  assertSubject(subject);
  assertValidity(validity);
  for (const name of names) assertAlternativeName(name);
  // RFC 5280 forbids an empty list of usages, and clients disagree on its meaning.
  if (usage.length === 0) throw new CertificateInputError('a certificate needs at least one usage');
}

/** @throws CertificateInputError */
export function assertSubject({ commonName, organizations = [] }: Subject): void {
  assertName('common name', commonName);
  for (const organization of organizations) assertName('organization', organization);
}

/** @throws CertificateInputError */
export function assertValidity({ notBefore, notAfter }: Validity): void {
  for (const [field, date] of Object.entries({ notBefore, notAfter })) {
    if (Number.isNaN(date.getTime())) throw new CertificateInputError(`${field} is not a date`);
    const year = date.getUTCFullYear();
    // UTCTime has a two-digit year for 1950 to 2049, so 1949 would be read as 2049.
    if (year < 1950 || year > 9999)
      throw new CertificateInputError(
        `${field} is in the year ${year}; a certificate can express the years from 1950 to 9999`,
      );
  }
  if (notAfter <= notBefore)
    throw new CertificateInputError(
      `notAfter must be later than notBefore: from ${notBefore.toISOString()} to ${notAfter.toISOString()}`,
    );
}

function assertName(field: string, value: string): void {
  const length = [...value].length;
  const shown = JSON.stringify(value.slice(0, MAX_NAME_LENGTH));
  if (length < 1 || length > MAX_NAME_LENGTH)
    throw new CertificateInputError(
      `the ${field} ${shown} has ${length} characters; a certificate allows 1 to ${MAX_NAME_LENGTH} characters`,
    );
  if (CONTROL.test(value))
    throw new CertificateInputError(`the ${field} ${shown} contains a control character`);
  if (!value.isWellFormed()) throw new CertificateInputError(`the ${field} ${shown} is not valid Unicode`);
}

function assertAlternativeName(name: string): void {
  if (isIP(name) !== 0) {
    if (name.includes('%'))
      throw new CertificateInputError(`the address ${name} has a zone, which a certificate cannot express`);
    return;
  }
  const labels = name.replace(/^\*\./, '').split('.');
  if (name.length <= MAX_DNS_NAME_LENGTH && labels.every((label) => LABEL.test(label))) return;
  // The field is an IA5String, so a name with non-ASCII characters needs its ASCII form. The name is not converted
  // silently, because clients must use the same form.
  const ascii = /[^\p{ASCII}]/u.test(name) ? domainToASCII(name) : '';
  const hint = ascii === '' ? '' : `; its ASCII form is ${ascii}`;
  throw new CertificateInputError(`${JSON.stringify(name)} is not a DNS name${hint}`);
}
