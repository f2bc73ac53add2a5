import { createHash, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { messageOf } from '@vmwright/core';
import { StartError } from '../errors.ts';

/** A shorter one can be guessed. */
const SHORTEST = 16;

export interface ApiKeysOptions {
  /** One key a line; `#` at its beginning, or after a space, begins a comment. */
  readonly file: string | undefined;
  /** Divided by commas or spaces: the environment's CLOUD_API_KEYS. */
  readonly text: string | undefined;
}

/** The keys that open the API. They are kept as digests only, and are in no log and no error. */
export class ApiKeys {
  readonly #options: ApiKeysOptions;
  #digests: readonly Buffer[];

  constructor(options: ApiKeysOptions) {
    this.#options = options;
    this.#digests = digestsOf(options);
  }

  /** Whether a request with this header may pass. The time it takes says nothing about how near a key is. */
  accept(authorization: string | undefined): boolean {
    const [, key] = /^Bearer +([\x21-\x7e]+) *$/i.exec(authorization ?? '') ?? [];
    if (key === undefined) return false;
    const digest = digestOf(key);
    return this.#digests.reduce((known, each) => timingSafeEqual(each, digest) || known, false);
  }

  /**
   * Reads the file again: a key is rotated without a restart.
   * @throws StartError when there is something wrong with it; the old keys stay
   */
  reload(): void {
    this.#digests = digestsOf(this.#options);
  }
}

function digestsOf({ file, text = '' }: ApiKeysOptions): Buffer[] {
  const keys = [
    ...text.split(/[\s,]+/).map((key) => ({ key, where: 'CLOUD_API_KEYS' })),
    ...(file === undefined ? [] : linesOf(file)),
  ].filter(({ key }) => key !== '');
  if (keys.length === 0) {
    const where = file === undefined ? '' : `${file} has none; `;
    throw new StartError(
      'KEYS',
      `there are no API keys: ${where}name a file with one a line by --keys, or set CLOUD_API_KEYS`,
    );
  }
  for (const { key, where } of keys) {
    if (!/^[\x21-\x7e]+$/.test(key))
      throw new StartError('KEYS', `${where}: a key is of printable ASCII characters without spaces`);
    if (key.length < SHORTEST)
      throw new StartError(
        'KEYS',
        `${where}: a key has at least ${SHORTEST} characters, this one ${key.length}`,
      );
  }
  return keys.map(({ key }) => digestOf(key));
}

function linesOf(file: string): { readonly key: string; readonly where: string }[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new StartError('KEYS', `the API keys cannot be read: ${messageOf(error)}`, { cause: error });
  }
  return text
    .split('\n')
    .map((line, at) => ({ key: line.replace(/(^|\s)#.*$/, '').trim(), where: `${file}:${at + 1}` }));
}

function digestOf(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}
