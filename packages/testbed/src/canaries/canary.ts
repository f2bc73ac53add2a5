import { randomBytes } from 'node:crypto';

/** Start of every canary. Long enough that its base64 form is unmistakable at every offset. */
const MARKER = 'vmwright-canary-';

/**
 * Returns a new credential for a test that can be recognised wherever it appears. The end of a test run fails if one appears where no
 * credential may be.
 * @param name what the credential is for, such as `cloud-key`; lower-case words with dashes
 */
export function canary(name: string): string {
  if (!/^[a-z]+(-[a-z]+)*$/.test(name))
    throw new Error(`${name} is not a name of lower-case words with dashes`);
  return `${MARKER}${name}-${randomBytes(6).toString('hex')}`;
}

const CANARY = /vmwright-canary-([a-z]+(?:-[a-z]+)*)-[0-9a-f]{12}/g;

/** Base64 forms of the marker for each of its three offsets, without the characters that depend on what surrounds it. */
const ENCODED = [0, 1, 2].map((offset) => {
  const skipped = (3 - offset) % 3;
  const length = Math.floor((MARKER.length - skipped) / 3) * 3;
  return Buffer.from(MARKER.slice(skipped, skipped + length)).toString('base64');
});

/** Credentials that tests do not choose, by their form. */
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

/** Returns the names of the credentials in a text: canaries, and private keys, tokens and hashed passwords by their form. */
export function credentialsIn(text: string | Buffer): readonly string[] {
  const found = new Set<string>();
  // Searching for fixed text first is a hundred times quicker than a regular expression, and logs have up to a hundred megabytes.
  if (text.includes(MARKER)) for (const [, name = ''] of String(text).matchAll(CANARY)) found.add(name);
  if (ENCODED.some((form) => text.includes(form))) found.add('canary in base64');
  for (const { name, start, pattern } of FORMS)
    if (text.includes(start) && pattern.test(String(text))) found.add(name);
  return [...found];
}
