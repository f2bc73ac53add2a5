import {
  createHash,
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto';
import { isIP, isIPv6 } from 'node:net';
import * as der from './der.ts';
import {
  assertLeafOptions,
  assertSubject,
  assertValidity,
  type LeafOptions,
  type Subject,
  type Validity,
} from './inputs.ts';

/** Certificate and private key, both in PEM. */
export interface Issued {
  readonly certificate: string;
  readonly key: string;
}

/**
 * Certificate authority (CA) with an ECDSA P-256 key, for webhooks and test clusters. It supports no revocation and no
 * intermediates. No library is used, because the available libraries are a hundred times as large
 * (docs/internals/decisions/002-certificates.md).
 */
export class CertificateAuthority {
  readonly certificate: string;
  readonly key: string;
  readonly #name: der.Der;
  readonly #signer: KeyObject;
  readonly #keyId: Uint8Array;

  private constructor(issued: Issued, name: der.Der, signer: KeyObject, keyId: Uint8Array) {
    this.certificate = issued.certificate;
    this.key = issued.key;
    this.#name = name;
    this.#signer = signer;
    this.#keyId = keyId;
  }

  /** Creates a self-signed CA with a new key. @throws CertificateInputError */
  static create(subject: Subject, validity: Validity): CertificateAuthority {
    assertSubject(subject);
    assertValidity(validity);
    const { publicKey, privateKey } = keyPair();
    const name = nameOf(subject);
    const keyId = keyIdOf(publicKey);
    const extensions = [
      extension(BASIC_CONSTRAINTS, der.sequence(der.boolean(true)), 'critical'),
      extension(KEY_USAGE, der.bitString(Uint8Array.of(0b10000110), 1), 'critical'), // digitalSignature, keyCertSign, cRLSign
      extension(SUBJECT_KEY_ID, der.octetString(keyId)),
    ];
    const certificate = signed({
      subject: name,
      issuer: name,
      publicKey,
      signer: privateKey,
      validity,
      extensions,
    });
    return new CertificateAuthority({ certificate, key: pemOf(privateKey) }, name, privateKey, keyId);
  }

  /**
   * Loads an existing CA.
   * @throws if the certificate or the key is not PEM, if they do not match, if the certificate is not that of a CA, or
   *   if the key is not ECDSA P-256
   */
  static load(issued: Issued): CertificateAuthority {
    const certificate = new X509Certificate(issued.certificate);
    const key = createPrivateKey(issued.key);
    if (!certificate.ca) throw new Error('the certificate is not that of a certificate authority');
    if (!certificate.checkPrivateKey(key))
      throw new Error('the key and the certificate do not belong to the same certificate authority');
    // Issued certificates declare ECDSA with SHA-256. Clients could not verify a signature by another type of key.
    if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1')
      throw new Error('the key of the certificate authority is not an ECDSA P-256 key');
    return new CertificateAuthority(issued, subjectOf(certificate.raw), key, keyIdOf(certificate.publicKey));
  }

  /** Issues a certificate with a new key. @throws CertificateInputError */
  issue(options: LeafOptions): Issued {
    assertLeafOptions(options);
    const { subject, usage, names = [], notBefore, notAfter } = options;
    const { publicKey, privateKey } = keyPair();
    const extensions = [
      extension(BASIC_CONSTRAINTS, der.sequence(), 'critical'),
      extension(KEY_USAGE, der.bitString(Uint8Array.of(0b10000000), 7), 'critical'), // digitalSignature
      extension(EXTENDED_KEY_USAGE, der.sequence(...usage.map((use) => der.oid(USAGES[use])))),
      extension(SUBJECT_KEY_ID, der.octetString(keyIdOf(publicKey))),
      extension(AUTHORITY_KEY_ID, der.sequence(der.tagged(0, this.#keyId, 'primitive'))),
    ];
    if (names.length > 0)
      extensions.push(extension(SUBJECT_ALT_NAME, der.sequence(...names.map(alternativeName))));
    const certificate = signed({
      subject: nameOf(subject),
      issuer: this.#name,
      publicKey,
      signer: this.#signer,
      validity: { notBefore, notAfter },
      extensions,
    });
    return { certificate, key: pemOf(privateKey) };
  }
}

const ECDSA_WITH_SHA256 = der.sequence(der.oid('1.2.840.10045.4.3.2'));
const COMMON_NAME = '2.5.4.3';
const ORGANIZATION = '2.5.4.10';
const SUBJECT_KEY_ID = '2.5.29.14';
const KEY_USAGE = '2.5.29.15';
const SUBJECT_ALT_NAME = '2.5.29.17';
const BASIC_CONSTRAINTS = '2.5.29.19';
const AUTHORITY_KEY_ID = '2.5.29.35';
const EXTENDED_KEY_USAGE = '2.5.29.37';
const USAGES = { server: '1.3.6.1.5.5.7.3.1', client: '1.3.6.1.5.5.7.3.2' } as const;

interface UnsignedCertificate {
  readonly subject: der.Der;
  readonly issuer: der.Der;
  readonly publicKey: KeyObject;
  readonly signer: KeyObject;
  readonly validity: Validity;
  readonly extensions: readonly der.Der[];
}

function signed({ subject, issuer, publicKey, signer, validity, extensions }: UnsignedCertificate): string {
  const body = der.sequence(
    der.tagged(0, der.integer(Uint8Array.of(2)), 'constructed'), // the number 2 means version 3
    der.integer(serial()),
    ECDSA_WITH_SHA256,
    issuer,
    der.sequence(der.time(validity.notBefore), der.time(validity.notAfter)),
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
    der.tagged(3, der.sequence(...extensions), 'constructed'),
  );
  const whole = der.sequence(body, ECDSA_WITH_SHA256, der.bitString(sign('sha256', body, signer)));
  const lines =
    Buffer.from(whole)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

/** Returns a positive serial number with 126 random bits. */
function serial(): Uint8Array {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes;
}

/**
 * Returns the subject of a CA certificate in its original encoding: clients compare it byte by byte with the issuer of
 * a certificate.
 */
function subjectOf(certificate: Uint8Array): der.Der {
  const [body = new Uint8Array()] = der.items(certificate);
  const [_version, _serial, _algorithm, _issuer, _validity, subject = new Uint8Array()] = der.items(body);
  return Uint8Array.from(subject);
}

function nameOf({ commonName, organizations = [] }: Subject): der.Der {
  const part = (type: string, text: string) => der.set(der.sequence(der.oid(type), der.utf8String(text)));
  return der.sequence(
    ...organizations.map((each) => part(ORGANIZATION, each)),
    part(COMMON_NAME, commonName),
  );
}

function alternativeName(name: string): der.Der {
  return isIP(name) === 0
    ? der.tagged(2, new TextEncoder().encode(name), 'primitive')
    : der.tagged(7, addressBytes(name), 'primitive');
}

function addressBytes(address: string): Uint8Array {
  if (!isIPv6(address)) return Uint8Array.from(address.split('.').map(Number));
  // The URL parser normalizes all notations, such as ::ffff:10.1.2.3.
  const whole = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [head = '', tail] = whole.split('::');
  const groups = (text: string) =>
    text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
  const [left, right] = [groups(head), groups(tail ?? '')];
  const middle = new Array<number>(8 - left.length - right.length).fill(0);
  return Uint8Array.from([...left, ...middle, ...right].flatMap((group) => [group >> 8, group & 0xff]));
}

function extension(type: string, content: der.Der, critical?: 'critical'): der.Der {
  const flags = critical === undefined ? [] : [der.boolean(true)];
  return der.sequence(der.oid(type), ...flags, der.octetString(content));
}

function keyPair(): { publicKey: KeyObject; privateKey: KeyObject } {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' });
}

/** Returns a key identifier; RFC 5280, 4.2.1.2 allows any value that is unique to the key. */
function keyIdOf(publicKey: KeyObject): Uint8Array {
  return createHash('sha1')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest();
}

function pemOf(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}
