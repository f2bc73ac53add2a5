import type { Random } from '@vmwright/testbed';
import { type Field, isKindOf, typeNamed, typeNames } from '../src/schema/schema.ts';

const TEXTS = [
  '',
  'a',
  'a b',
  ' <&>"\' ',
  ']]>',
  '\r\n\t',
  '&amp;',
  'žluťoučký 🐎',
  '<!-- -->',
  '%2f',
] as const;

/** Returns a random value of a type, with its keys in random order. */
export function randomValue(random: Random, type: string, depth = 0): unknown {
  switch (type) {
    case 'anyType':
      return randomAny(random, depth);
    case 'ManagedObjectReference':
      return { type: 'VirtualMachine', value: `vm-${random.below(1000)}` };
    case 'string':
    case 'base64Binary':
      return random.pick(TEXTS);
    case 'boolean':
      return random.chance(0.5);
    case 'byte':
      return random.below(256) - 128;
    case 'short':
      return random.below(65_536) - 32_768;
    case 'int':
      return random.below(2 ** 32) - 2 ** 31;
    case 'long':
      return Math.floor((random.next() - 0.5) * 2 * Number.MAX_SAFE_INTEGER);
    case 'float':
    case 'double':
      return random.chance(0.1) ? Number.POSITIVE_INFINITY : random.next() * 10 ** (random.below(40) - 20);
    case 'dateTime':
      return new Date(random.below(2 ** 40));
    default:
      return randomObject(random, type, depth);
  }
}

function randomObject(random: Random, type: string, depth: number): Record<string, unknown> {
  const info = typeNamed(type);
  if (info === undefined) throw new Error(`unknown type ${type}`);
  const entries: [string, unknown][] = [];
  for (const field of info.fields) {
    // Deeper levels omit more optional fields, so that values of recursive types have a limited depth.
    if (field.isOptional && random.chance(depth === 0 ? 0.3 : 0.5 + depth / 4)) continue;
    const value = field.isList ? randomList(random, field, depth) : randomField(random, field, depth);
    if (value !== undefined) entries.push([field.name, value]);
  }
  return Object.fromEntries(random.shuffled(entries));
}

/** Returns a non-empty list: XML cannot distinguish an empty list from a missing one. */
function randomList(random: Random, field: Field, depth: number): unknown {
  const list = Array.from({ length: 1 + random.below(3) }, () => randomField(random, field, depth));
  return list.filter((item) => item !== undefined);
}

function randomField(random: Random, { type, isTyped }: Field, depth: number): unknown {
  if (!isTyped || type === 'anyType' || typeNamed(type) === undefined)
    return randomValue(random, type, depth + 1);
  const kinds = subtypesOf(type);
  const kind = random.pick(depth < 3 ? kinds : [type]);
  return { _type: kind, ...randomObject(random, kind, depth + 1) };
}

function randomAny(random: Random, depth: number): unknown {
  const plain = ['string', 'boolean', 'int', 'long', 'double', 'dateTime', 'ManagedObjectReference'] as const;
  if (depth > 3 || random.chance(0.7)) return randomValue(random, random.pick(plain), depth + 1);
  return { _type: 'OptionValue', key: 'k', value: random.pick(TEXTS) };
}

function subtypesOf(type: string): readonly [string, ...string[]] {
  return [type, ...typeNames().filter((name) => name !== type && isKindOf(name, type))];
}
