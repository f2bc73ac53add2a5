import { UnreadableAnswerError } from '../errors.ts';

/** How XML's own types are read and written. Longs beyond 2^53 lose their last digits; vCenter has none such. */
export interface Primitive {
  /** Undefined when the text is none of this type. */
  read(text: string): unknown;
  /** Undefined when the value is none of this type. */
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
    // Larger than it should be is let pass: what is read is the server's to answer for.
    read: (raw) => (/^\s*[+-]?\d+\s*$/.test(raw) ? Number(raw) : undefined),
    write: (value) => (Number.isInteger(value) && inside(value, limit) ? String(value) : undefined),
  };
}

function inside(value: unknown, limit: number): boolean {
  return typeof value === 'number' && value >= -limit && value < limit;
}

/** A Map and not an object: the answer chooses the word that is looked up. */
const FRACTIONS: ReadonlyMap<string, number> = new Map([
  ['NaN', Number.NaN],
  ['INF', Number.POSITIVE_INFINITY],
  ['-INF', Number.NEGATIVE_INFINITY],
]);

const fraction: Primitive = {
  read: (raw) => {
    const word = raw.trim();
    const number = FRACTIONS.get(word) ?? Number(word);
    return word === '' || (Number.isNaN(number) && word !== 'NaN') ? undefined : number;
  },
  write: (value) => {
    if (typeof value !== 'number') return undefined;
    return FRACTIONS.entries().find(([, number]) => Object.is(number, value))?.[0] ?? String(value);
  },
};

const instant: Primitive = {
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
  ['float', fraction],
  ['double', fraction],
  ['dateTime', instant],
]);

export function readPrimitive(type: string, primitive: Primitive, raw: string): unknown {
  const value = primitive.read(raw);
  if (value !== undefined) return value;
  throw new UnreadableAnswerError(
    `the answer has ${JSON.stringify(raw.slice(0, 60))} for a value of type ${type}`,
  );
}
