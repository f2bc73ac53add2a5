import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';

export interface Subject {
  readonly commonName: string;
  /** Kubernetes reads them as the groups of a client. */
  readonly organizations?: readonly string[];
}

export interface Validity {
  readonly notBefore: Date;
  readonly notAfter: Date;
}

export interface LeafOptions extends Validity {
  readonly subject: Subject;
  readonly usage: readonly ('server' | 'client')[];
  /** DNS names and IP addresses under which a server is reached. */
  readonly names?: readonly string[];
}

/** Input that cannot be encoded in a certificate (RFC 5280), or that readers of certificates would misread. */
export class CertificateInputError extends Error {
  readonly code = 'CERTIFICATE_INPUT';

  constructor(message: string) {
    super(message);
    this.name = 'CertificateInputError';
  }
}

/** RFC 5280, appendix A: `ub-common-name` and `ub-organization-name`. */
const MAX_NAME_LENGTH = 64;
const MAX_DNS_NAME_LENGTH = 253;
/** A label of a DNS name. RFC 5280 forbids the underscore, but host names on private networks have it and Go accepts it. */
const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/i;
const CONTROL = /\p{Cc}/u;

/** @throws CertificateInputError */
export function assertLeafOptions({ subject, usage, names = [], ...validity }: LeafOptions): void {
  assertSubject(subject);
  assertValidity(validity);
  for (const name of names) assertAlternativeName(name);
  // An empty list of usages is not allowed, and readers differ in what they make of one.
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
    // UTCTime has two digits for the year and stands for 1950 to 2049: 1949 would be read as 2049.
    if (year < 1950 || year > 9999)
      throw new CertificateInputError(
        `${field} is in the year ${year}; a certificate can express the years from 1950 to 9999`,
      );
  }
  if (notAfter <= notBefore)
    throw new CertificateInputError(
      `a certificate must end after it begins: from ${notBefore.toISOString()} to ${notAfter.toISOString()}`,
    );
}

function assertName(what: string, value: string): void {
  const length = [...value].length;
  const shown = JSON.stringify(value.slice(0, MAX_NAME_LENGTH));
  if (length < 1 || length > MAX_NAME_LENGTH)
    throw new CertificateInputError(
      `the ${what} ${shown} has ${length} characters; a certificate takes 1 to ${MAX_NAME_LENGTH} characters`,
    );
  if (CONTROL.test(value)) throw new CertificateInputError(`the ${what} ${shown} has a control character`);
  if (!value.isWellFormed()) throw new CertificateInputError(`the ${what} ${shown} is not valid Unicode`);
}

function assertAlternativeName(name: string): void {
  if (isIP(name) !== 0) {
    if (name.includes('%'))
      throw new CertificateInputError(`the address ${name} has a zone, which a certificate cannot express`);
    return;
  }
  const labels = name.replace(/^\*\./, '').split('.');
  if (name.length <= MAX_DNS_NAME_LENGTH && labels.every((label) => LABEL.test(label))) return;
  // The field is an IA5String: other characters are written in their ASCII form. Not converted silently, because the
  // client that checks the certificate must use the same form.
  const ascii = /[^\p{ASCII}]/u.test(name) ? domainToASCII(name) : '';
  const hint = ascii === '' ? '' : `; its ASCII form is ${ascii}`;
  throw new CertificateInputError(`${JSON.stringify(name)} is not a DNS name${hint}`);
}
