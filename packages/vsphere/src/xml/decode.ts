import { type Field, nearestKnownType, type TypeInfo, typeNamed } from '../schema/schema.ts';
import { PRIMITIVES, type Primitive, readPrimitive } from './primitives.ts';
import type { Reader } from './reader.ts';

const REFERENCE = 'ManagedObjectReference';
const LIST = 'ArrayOf';

/** How to decode a type. `unknown` stands for enumerations and for types newer than the schema. */
type Kind =
  | { readonly is: 'reference' }
  | { readonly is: 'primitive'; readonly type: string; readonly primitive: Primitive }
  | { readonly is: 'object'; readonly info: TypeInfo }
  | { readonly is: 'list'; readonly of: string }
  | { readonly is: 'unknown' };

const kinds = new Map<string, Kind>();
/**
 * Maximum length of a cached type name; longer than any of vim25. The names come from the server and stay in memory.
 */
const MAX_TYPE_LENGTH = 256;
/** Maximum number of cached types; more than vim25 has. A server that sends ever new names must not fill the memory. */
const MAX_KINDS = 10_000;

/**
 * Decodes the element that the reader has opened.
 *
 * Guarantees: unknown elements are skipped. If the schema has only the name of a type, but not its fields, the element
 * is decoded as the nearest base type with fields. If the schema does not have the type at all, the element is decoded
 * as the declared type. In both cases `_type` keeps the name from the response.
 *
 * @param declared type in the schema; `xsi:type` of the element overrides it
 * @throws InvalidResponseError when a text does not match its type
 */
export function decode(reader: Reader, declared: string): unknown {
  if (reader.isNil) return reader.skip();
  const xsiType = reader.type;
  const kind = kindOf(xsiType ?? declared);
  switch (kind.is) {
    case 'reference':
      return { type: reader.kind ?? '', value: reader.text() };
    case 'primitive':
      return readPrimitive(kind.type, kind.primitive, reader.text());
    case 'object':
      return decodeObject(reader, kind.info, xsiType);
    case 'list':
      return decodeList(reader, kind.of);
  }
  const base = kindOf(declared);
  if (base.is === 'object') return decodeObject(reader, base.info, xsiType);
  return decodeUnknown(reader, xsiType);
}

function kindOf(type: string): Kind {
  const known = kinds.get(type);
  if (known !== undefined) return known;
  if (type.length > MAX_TYPE_LENGTH) return { is: 'unknown' };
  const name = Array.from(type).join(''); // copies the name, because a slice would keep the whole response in memory
  const kind = lookUpKind(name);
  if (kinds.size >= MAX_KINDS) kinds.clear();
  kinds.set(name, kind);
  return kind;
}

function lookUpKind(type: string): Kind {
  if (type === REFERENCE) return { is: 'reference' };
  const primitive = PRIMITIVES.get(type);
  if (primitive !== undefined) return { is: 'primitive', type, primitive };
  const info = typeNamed(type) ?? nearestKnownType(type);
  if (info !== undefined) return { is: 'object', info };
  return type.startsWith(LIST) ? { is: 'list', of: type.slice(LIST.length) } : { is: 'unknown' };
}

function decodeObject(reader: Reader, info: TypeInfo, xsiType: string | undefined): object {
  const object: Record<string, unknown> = xsiType === undefined ? {} : { _type: xsiType };
  if (!reader.enter()) return object;
  const { fields } = info;
  for (let at = 0; reader.next(); ) {
    at = fieldIndex(reader, info, at);
    const field = fields[at];
    if (field === undefined) {
      reader.skip();
      at = 0;
    } else addValue(object, field, decode(reader, field.type));
  }
  return object;
}

/** Returns the index of the element's field, or -1. Tries the previous element's field and its successor first. */
function fieldIndex(reader: Reader, { fields, byName }: TypeInfo, last: number): number {
  for (let at = last; at < last + 2; at++) {
    const field = fields[at];
    if (field !== undefined && reader.isNamed(field.name)) return at;
  }
  const field = byName.get(reader.name);
  return field === undefined ? -1 : fields.indexOf(field);
}

function addValue(object: Record<string, unknown>, { name, isList }: Field, value: unknown): void {
  if (!isList) {
    if (value !== undefined) object[name] = value;
    return;
  }
  const list = object[name];
  if (Array.isArray(list)) list.push(value);
  else object[name] = [value];
}

/** Decodes the value of a list property: `ArrayOfInt`, `ArrayOfVirtualDevice`. */
function decodeList(reader: Reader, of: string): unknown[] {
  const item =
    PRIMITIVES.has(of) || typeNamed(of) !== undefined ? of : `${of.charAt(0).toLowerCase()}${of.slice(1)}`;
  const type = of !== REFERENCE && PRIMITIVES.has(item) ? item : of;
  const list: unknown[] = [];
  if (reader.enter()) while (reader.next()) list.push(decode(reader, type));
  return list;
}

/** Decodes an enumeration as text and skips an object of an unknown type. */
function decodeUnknown(reader: Reader, xsiType: string | undefined): unknown {
  if (!reader.isEmpty && reader.isLeaf) return reader.text();
  reader.skip();
  return xsiType === undefined ? undefined : { _type: xsiType };
}
