import { createHash, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { messageOf } from '@vmwright/core';
import { StartError } from '../errors.ts';

/** Minimum length of a key, so that it cannot be guessed. */
const MIN_LENGTH = 16;

export interface ApiKeysOptions {
  /** File with one key per line. `#` at the start of a line or after a space starts a comment. */
  readonly file: string | undefined;
  /** Keys separated by commas or spaces, from the environment variable CLOUD_API_KEYS. */
  readonly text: string | undefined;
}

/** Valid API keys. Requests are checked against digests of the keys, and keys never appear in logs or errors. */
export class ApiKeys {
  readonly #options: ApiKeysOptions;
  #digests: readonly Buffer[];

  /** @throws StartError if no key is configured, or if a key is invalid */
  constructor(options: ApiKeysOptions) {
    this.#options = options;
    this.#digests = digestsOf(options);
  }

  /** Returns whether an Authorization header has a valid key. Compares keys in constant time. */
  accept(authorization: string | undefined): boolean {
    const [, key] = /^Bearer +([\x21-\x7e]+) *$/i.exec(authorization ?? '') ?? [];
    if (key === undefined) return false;
    const digest = digestOf(key);
    return this.#digests.reduce((valid, each) => timingSafeEqual(each, digest) || valid, false);
  }

  /**
   * Reads the file again, so that keys can be rotated without a restart.
   * @throws StartError if the file is invalid; then the previous keys stay valid
   */
  reload(): void {
    this.#digests = digestsOf(this.#options);
  }
}

function digestsOf({ file, text = '' }: ApiKeysOptions): Buffer[] {
  const keys = [
    ...text.split(/[\s,]+/).map((key) => ({ key, where: 'CLOUD_API_KEYS' })),
    ...(file === undefined ? [] : readKeys(file)),
  ].filter(({ key }) => key !== '');
  if (keys.length === 0) {
    const where = file === undefined ? '' : `${file} contains none; `;
    throw new StartError(
      'KEYS',
      `no API keys: ${where}pass a file with one key per line to --keys, or set CLOUD_API_KEYS`,
    );
  }
  for (const { key, where } of keys) {
    if (!/^[\x21-\x7e]+$/.test(key))
      throw new StartError(
        'KEYS',
        `${where}: a key must consist of printable ASCII characters without spaces`,
      );
    if (key.length < MIN_LENGTH)
      throw new StartError(
        'KEYS',
        `${where}: a key must have at least ${MIN_LENGTH} characters; this one has ${key.length}`,
      );
  }
  return keys.map(({ key }) => digestOf(key));
}

function readKeys(file: string): { readonly key: string; readonly where: string }[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new StartError('KEYS', `cannot read the API keys: ${messageOf(error)}`, { cause: error });
  }
  return text
    .split('\n')
    .map((line, index) => ({ key: line.replace(/(^|\s)#.*$/, '').trim(), where: `${file}:${index + 1}` }));
}

function digestOf(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}
