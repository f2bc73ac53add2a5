/**
 * Subset of ASN.1's distinguished encoding rules (DER, X.690) that certificates need. Every value consists of a tag, a
 * length and its content; constructed values contain other values.
 */
export type Der = Uint8Array<ArrayBuffer>;

const INTEGER = 0x02;
const BIT_STRING = 0x03;
const OCTET_STRING = 0x04;
const OID = 0x06;
const UTF8_STRING = 0x0c;
const UTC_TIME = 0x17;
const GENERALIZED_TIME = 0x18;
const SEQUENCE = 0x30;
const SET = 0x31;

export function sequence(...items: readonly Uint8Array[]): Der {
  return value(SEQUENCE, concat(items));
}

export function set(...items: readonly Uint8Array[]): Der {
  return value(SET, concat(items));
}

export function integer(bytes: Uint8Array): Der {
  const start = bytes.findIndex((byte) => byte !== 0);
  const digits = start === -1 ? Uint8Array.of(0) : bytes.subarray(start);
  const [first = 0] = digits;
  // The top bit is the sign, so a leading 0 keeps the number positive.
  return value(INTEGER, first < 0x80 ? digits : concat([Uint8Array.of(0), digits]));
}

export function boolean(flag: boolean): Der {
  return value(0x01, Uint8Array.of(flag ? 0xff : 0));
}

export function octetString(content: Uint8Array): Der {
  return value(OCTET_STRING, content);
}

export function bitString(content: Uint8Array, unusedBits = 0): Der {
  return value(BIT_STRING, concat([Uint8Array.of(unusedBits), content]));
}

export function utf8String(text: string): Der {
  return value(UTF8_STRING, new TextEncoder().encode(text));
}

export function oid(dotted: string): Der {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return value(OID, Uint8Array.from([first * 40 + second, ...rest.flatMap(base128)]));
}

/** Encodes a time as RFC 5280 requires: with two-digit years until 2049, with four-digit years from 2050. */
export function time(at: Date): Der {
  const digits = at.toISOString().replace(/[-:T]|\.\d+/g, '');
  const ascii = (text: string) => new TextEncoder().encode(text);
  return at.getUTCFullYear() < 2050
    ? value(UTC_TIME, ascii(digits.slice(2)))
    : value(GENERALIZED_TIME, ascii(digits));
}

/** Encodes a value with a context-specific tag: `[n]`. */
export function tagged(n: number, content: Uint8Array, form: 'constructed' | 'primitive'): Der {
  return value((form === 'constructed' ? 0xa0 : 0x80) | n, content);
}

/** Returns the values in a constructed value, each with its tag and length. */
export function items(constructed: Uint8Array): Uint8Array[] {
  const found: Uint8Array[] = [];
  let { start } = extentOf(constructed, 0);
  while (start < constructed.length) {
    const { end } = extentOf(constructed, start);
    found.push(constructed.subarray(start, end));
    start = end;
  }
  return found;
}

/** Returns the start and end of the content of the value at offset `at`. */
function extentOf(bytes: Uint8Array, at: number): { start: number; end: number } {
  const first = bytes[at + 1] ?? 0;
  const more = first < 0x80 ? 0 : first & 0x7f; // number of further length bytes
  const start = at + 2 + more;
  const size = more === 0 ? first : bytes.subarray(at + 2, start).reduce((sum, byte) => sum * 256 + byte, 0);
  return { start, end: start + size };
}

function value(tag: number, content: Uint8Array): Der {
  return concat([Uint8Array.of(tag), length(content.length), content]);
}

function length(n: number): Uint8Array {
  if (n < 0x80) return Uint8Array.of(n);
  const bytes: number[] = [];
  for (let left = n; left > 0; left >>>= 8) bytes.unshift(left & 0xff);
  return Uint8Array.from([0x80 | bytes.length, ...bytes]);
}

function base128(n: number): number[] {
  const bytes = [n & 0x7f];
  for (let left = n >>> 7; left > 0; left >>>= 7) bytes.unshift(0x80 | (left & 0x7f));
  return bytes;
}

function concat(parts: readonly Uint8Array[]): Der {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
