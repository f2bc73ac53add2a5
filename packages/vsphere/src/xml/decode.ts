import { type Field, nearestTo, type TypeInfo, typeNamed } from '../schema/schema.ts';
import { PRIMITIVES, type Primitive, readPrimitive } from './primitives.ts';
import type { Reader } from './reader.ts';

const REFERENCE = 'ManagedObjectReference';
const LIST = 'ArrayOf';

/** How a type is read, looked up once. Unknown are enumerations, and what is younger. */
type Kind =
  | { readonly is: 'reference' }
  | { readonly is: 'primitive'; readonly type: string; readonly primitive: Primitive }
  | { readonly is: 'object'; readonly info: TypeInfo }
  | { readonly is: 'list'; readonly of: string }
  | { readonly is: 'unknown' };

const kinds = new Map<string, Kind>();
/** Longer than any type of vim25. Names that the server chooses are kept, so they must be short. */
const LONGEST_TYPE = 256;
/** More than vim25 has types; a server that sends names without end must not fill the memory. */
const MOST_KINDS = 10_000;

/**
 * What the element says that the reader has just opened, as a value of its type.
 *
 * Guarantees: whatever is not known is passed over. A subtype that we do not know comes as the nearest base that we do,
 * with its own name in `_type`; one that nobody knew when this was written, as the declared type.
 *
 * @param declared the type by the schema; what the element says itself (`xsi:type`) goes first
 * @throws UnreadableAnswerError where the text is none that fits
 */
export function decode(reader: Reader, declared: string): unknown {
  if (reader.isNil) return reader.skip();
  const said = reader.type;
  const kind = kindOf(said ?? declared);
  switch (kind.is) {
    case 'reference':
      return { type: reader.kind ?? '', value: reader.text() };
    case 'primitive':
      return readPrimitive(kind.type, kind.primitive, reader.text());
    case 'object':
      return decodeObject(reader, kind.info, said);
    case 'list':
      return decodeList(reader, kind.of);
  }
  const base = kindOf(declared);
  if (base.is === 'object') return decodeObject(reader, base.info, said);
  return decodeUnknown(reader, said);
}

function kindOf(type: string): Kind {
  const known = kinds.get(type);
  if (known !== undefined) return known;
  if (type.length > LONGEST_TYPE) return { is: 'unknown' };
  const name = Array.from(type).join(''); // a copy: what is cut out of an answer keeps all of it in memory
  const kind = lookedUp(name);
  if (kinds.size >= MOST_KINDS) kinds.clear();
  kinds.set(name, kind);
  return kind;
}

function lookedUp(type: string): Kind {
  if (type === REFERENCE) return { is: 'reference' };
  const primitive = PRIMITIVES.get(type);
  if (primitive !== undefined) return { is: 'primitive', type, primitive };
  const info = typeNamed(type) ?? nearestTo(type);
  if (info !== undefined) return { is: 'object', info };
  return type.startsWith(LIST) ? { is: 'list', of: type.slice(LIST.length) } : { is: 'unknown' };
}

function decodeObject(reader: Reader, info: TypeInfo, said: string | undefined): object {
  const object: Record<string, unknown> = said === undefined ? {} : { _type: said };
  if (!reader.enter()) return object;
  const { fields } = info;
  for (let at = 0; reader.next(); ) {
    at = place(reader, info, at);
    const field = fields[at];
    if (field === undefined) {
      reader.skip();
      at = 0;
    } else add(object, field, decode(reader, field.type));
  }
  return object;
}

/** Which field the element is: mostly that of the one before, or the next in order. -1 for none. */
function place(reader: Reader, { fields, byName }: TypeInfo, last: number): number {
  for (let at = last; at < last + 2; at++) {
    const field = fields[at];
    if (field !== undefined && reader.isNamed(field.name)) return at;
  }
  const field = byName.get(reader.name);
  return field === undefined ? -1 : fields.indexOf(field);
}

function add(object: Record<string, unknown>, { name, isList }: Field, value: unknown): void {
  if (!isList) {
    if (value !== undefined) object[name] = value;
    return;
  }
  const list = object[name];
  if (Array.isArray(list)) list.push(value);
  else object[name] = [value];
}

/** `ArrayOfInt`, `ArrayOfVirtualDevice`: what a property that is a list comes in. */
function decodeList(reader: Reader, of: string): unknown[] {
  const item =
    PRIMITIVES.has(of) || typeNamed(of) !== undefined ? of : `${of.charAt(0).toLowerCase()}${of.slice(1)}`;
  const type = of !== REFERENCE && PRIMITIVES.has(item) ? item : of;
  const list: unknown[] = [];
  if (reader.enter()) while (reader.next()) list.push(decode(reader, type));
  return list;
}

/** An enumeration reads as the text it is. */
function decodeUnknown(reader: Reader, said: string | undefined): unknown {
  if (!reader.isEmpty && reader.isLeaf) return reader.text();
  reader.skip();
  return said === undefined ? undefined : { _type: said };
}
