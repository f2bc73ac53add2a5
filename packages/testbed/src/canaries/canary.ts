import { randomBytes } from 'node:crypto';

/** Start of every canary. It is long enough to be recognised in base64 at every offset. */
const MARKER = 'vmwright-canary-';

/**
 * Returns a canary: a new credential for a test, which can be recognised wherever it appears. A test run fails at its
 * end if a canary appeared where no credential may be.
 * @param name purpose of the credential in lower-case words with dashes, such as `cloud-key`
 */
export function canary(name: string): string {
  if (!/^[a-z]+(-[a-z]+)*$/.test(name))
    throw new Error(`the name of a canary must consist of lower-case words with dashes, not "${name}"`);
  return `${MARKER}${name}-${randomBytes(6).toString('hex')}`;
}

const CANARY = /vmwright-canary-([a-z]+(?:-[a-z]+)*)-[0-9a-f]{12}/g;

/**
 * The marker in base64, for each of its three possible offsets in an encoded text. Characters that depend on the
 * surrounding text are left out.
 */
const ENCODED = [0, 1, 2].map((offset) => {
  const skipped = (3 - offset) % 3;
  const length = Math.floor((MARKER.length - skipped) / 3) * 3;
  return Buffer.from(MARKER.slice(skipped, skipped + length)).toString('base64');
});

/** Patterns of credentials that cannot be canaries, because programs generate them. */
const FORMS: readonly { readonly name: string; readonly start: string; readonly pattern: RegExp }[] = [
  {
    name: 'private key',
    start: '-----BEGIN ',
    pattern: /-----BEGIN [A-Z ]*PRIVATE KEY-----/,
  },
  {
    name: 'private key in base64',
    start: 'LS0tLS1CRUdJTi',
    pattern: /LS0tLS1CRUdJTi(?:BQUklWQVRFIEtFWS|BFQyBQUklWQVRF|BSU0EgUFJJVkFURS)/,
  },
  {
    name: 'token of a service account',
    start: 'eyJhbGciOi',
    pattern: /eyJhbGciOi[\w-]+\.eyJ[\w-]+\.[\w-]{20}/,
  },
  {
    name: 'hashed password',
    start: '$6$',
    pattern: /\$6\$(?:rounds=\d+\$)?[./0-9A-Za-z]{8,16}\$[./0-9A-Za-z]{86}/,
  },
];

/** Returns the names of the credentials in a text: canaries, private keys, tokens and hashed passwords. */
export function credentialsIn(text: string | Buffer): readonly string[] {
  const found = new Set<string>();
  // Searches for fixed text first, which is a hundred times faster than a regular expression. Logs have up to a hundred
  // megabytes.
  if (text.includes(MARKER)) for (const [, name = ''] of String(text).matchAll(CANARY)) found.add(name);
  if (ENCODED.some((form) => text.includes(form))) found.add('canary in base64');
  for (const { name, start, pattern } of FORMS)
    if (text.includes(start) && pattern.test(String(text))) found.add(name);
  return [...found];
}
