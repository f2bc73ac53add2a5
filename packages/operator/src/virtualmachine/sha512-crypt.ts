import { hash } from 'node:crypto';

/* SHA-512 crypt ($6$), from the public specification "Unix crypt using SHA-256 and SHA-512" by Ulrich Drepper. */

const DEFAULT_ROUNDS = 5_000;
const DIGEST_BYTES = 64;
const MAX_SALT_CHARACTERS = 16;
const ALPHABET = './0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** Characters that a salt may consist of. */
const SALT = /^[./0-9A-Za-z]+$/;

/**
 * Returns the hash of a password as `/etc/shadow` stores it: `$6$<salt>$<86 characters>`.
 * @param salt only the first 16 characters count
 * @param rounds 1,000 to 999,999,999. @default 5,000
 * @throws RangeError if the salt has other characters than `./0-9A-Za-z`
 */
export function sha512Crypt(password: string, salt: string, rounds = DEFAULT_ROUNDS): string {
  if (!SALT.test(salt))
    throw new RangeError('the salt of a password hash has a character that is not allowed');
  const key = Buffer.from(password);
  const used = Buffer.from(salt.slice(0, MAX_SALT_CHARACTERS));
  const prefix = rounds === DEFAULT_ROUNDS ? '' : `rounds=${rounds}$`;
  return `$6$${prefix}${used}$${encode(digestOf(key, used, rounds))}`;
}

function digestOf(key: Buffer, salt: Buffer, rounds: number): Buffer {
  const alternate = sha512(key, salt, key);
  const parts = [key, salt, repeated(alternate, key.length)];
  for (let bits = key.length; bits > 0; bits >>>= 1) parts.push(bits & 1 ? alternate : key);
  const initial = sha512(...parts);
  const keySequence = repeated(sha512(...Array.from(key, () => key)), key.length);
  const saltCount = 16 + (initial[0] ?? 0);
  const saltSequence = repeated(sha512(...Array.from({ length: saltCount }, () => salt)), salt.length);
  let digest = initial;
  for (let round = 0; round < rounds; round++) {
    const isOdd = round % 2 === 1;
    const input = [isOdd ? keySequence : digest];
    if (round % 3 !== 0) input.push(saltSequence);
    if (round % 7 !== 0) input.push(keySequence);
    input.push(isOdd ? digest : keySequence);
    digest = sha512(...input);
  }
  return digest;
}

function sha512(...parts: readonly Buffer[]): Buffer {
  return hash('sha512', Buffer.concat(parts), 'buffer');
}

/** Returns the digest repeated up to a length in bytes. */
function repeated(digest: Buffer, length: number): Buffer {
  return Buffer.alloc(length, digest);
}

/**
 * Encodes the digest in 86 characters. The specification lists the order of the bytes: groups of three bytes with a
 * distance of 21, rotated by one position from group to group. The last byte follows alone.
 */
function encode(digest: Buffer): string {
  const byte = (at: number) => digest[at] ?? 0;
  let text = '';
  for (let group = 0; group < 21; group++) {
    const [a, b, c] = [0, 1, 2].map((i) => byte(((i + group) % 3) * 21 + group));
    text += characters(((a ?? 0) << 16) | ((b ?? 0) << 8) | (c ?? 0), 4);
  }
  return text + characters(byte(DIGEST_BYTES - 1), 2);
}

function characters(value: number, count: number): string {
  return Array.from({ length: count }, (_, i) => ALPHABET[(value >>> (6 * i)) & 63]).join('');
}
