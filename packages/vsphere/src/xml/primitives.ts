import { InvalidResponseError } from '../errors.ts';

/**
 * Converts values of an XML Schema type from and to text. Longs above 2^53 lose precision; vCenter has no such values.
 */
export interface Primitive {
  /** Returns undefined when the text is not of this type. */
  read(text: string): unknown;
  /** Returns undefined when the value is not of this type. */
  write(value: unknown): string | undefined;
}

const text: Primitive = {
  read: (raw) => raw,
  write: (value) => (typeof value === 'string' ? value : undefined),
};

const boolean: Primitive = {
  read: (raw) => {
    const word = raw.trim();
    if (word === 'true' || word === '1') return true;
    return word === 'false' || word === '0' ? false : undefined;
  },
  write: (value) => (typeof value === 'boolean' ? String(value) : undefined),
};

function integer(bits: number): Primitive {
  const limit = bits > 53 ? Number.MAX_SAFE_INTEGER + 1 : 2 ** (bits - 1);
  return {
    // The range is not checked: a value from the server is accepted as it is.
    read: (raw) => (/^\s*[+-]?\d+\s*$/.test(raw) ? Number(raw) : undefined),
    write: (value) => (Number.isInteger(value) && isWithin(value, limit) ? String(value) : undefined),
  };
}

function isWithin(value: unknown, limit: number): boolean {
  return typeof value === 'number' && value >= -limit && value < limit;
}

/** A Map, because the looked-up word comes from the server and an object would also have `toString`. */
const SPECIAL_FLOATS: ReadonlyMap<string, number> = new Map([
  ['NaN', Number.NaN],
  ['INF', Number.POSITIVE_INFINITY],
  ['-INF', Number.NEGATIVE_INFINITY],
]);

const float: Primitive = {
  read: (raw) => {
    const word = raw.trim();
    const number = SPECIAL_FLOATS.get(word) ?? Number(word);
    return word === '' || (Number.isNaN(number) && word !== 'NaN') ? undefined : number;
  },
  write: (value) => {
    if (typeof value !== 'number') return undefined;
    return SPECIAL_FLOATS.entries().find(([, number]) => Object.is(number, value))?.[0] ?? String(value);
  },
};

const dateTime: Primitive = {
  read: (raw) => {
    const date = new Date(raw.trim());
    return Number.isNaN(date.getTime()) ? undefined : date;
  },
  write: (value) =>
    value instanceof Date && !Number.isNaN(value.getTime()) ? value.toISOString() : undefined,
};

export const PRIMITIVES: ReadonlyMap<string, Primitive> = new Map([
  ['string', text],
  ['anyURI', text],
  ['base64Binary', text],
  ['boolean', boolean],
  ['byte', integer(8)],
  ['unsignedByte', integer(9)],
  ['short', integer(16)],
  ['int', integer(32)],
  ['long', integer(64)],
  ['float', float],
  ['double', float],
  ['dateTime', dateTime],
]);

export function readPrimitive(type: string, primitive: Primitive, raw: string): unknown {
  const value = primitive.read(raw);
  if (value !== undefined) return value;
  throw new InvalidResponseError(
    `the response has ${JSON.stringify(raw.slice(0, 60))} for a value of type ${type}`,
  );
}
