import { nearestTo, type TypeInfo, typeNamed } from '../schema/schema.ts';
import { PRIMITIVES, readPrimitive } from './primitives.ts';
import type { Reader } from './reader.ts';

const REFERENCE = 'ManagedObjectReference';
const LIST = 'ArrayOf';

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
  const type = said ?? declared;
  if (type === REFERENCE) return { type: reader.kind ?? '', value: reader.text() };
  const primitive = PRIMITIVES.get(type);
  if (primitive !== undefined) return readPrimitive(type, primitive, reader.text());
  const info = typeNamed(type) ?? nearestTo(type);
  if (info !== undefined) return decodeObject(reader, info, said);
  if (type.startsWith(LIST)) return decodeList(reader, type.slice(LIST.length));
  const base = typeNamed(declared);
  if (base !== undefined) return decodeObject(reader, base, said);
  return decodeUnknown(reader, said);
}

function decodeObject(reader: Reader, { byName }: TypeInfo, said: string | undefined): object {
  const object: Record<string, unknown> = said === undefined ? {} : { _type: said };
  reader.children(() => {
    const field = byName.get(reader.name);
    if (field === undefined) return reader.skip();
    const value = decode(reader, field.type);
    if (!field.isList) {
      if (value !== undefined) object[field.name] = value;
      return;
    }
    const list = object[field.name];
    if (Array.isArray(list)) list.push(value);
    else object[field.name] = [value];
  });
  return object;
}

/** `ArrayOfInt`, `ArrayOfVirtualDevice`: what a property that is a list comes in. */
function decodeList(reader: Reader, of: string): unknown[] {
  const item =
    PRIMITIVES.has(of) || typeNamed(of) !== undefined ? of : `${of.charAt(0).toLowerCase()}${of.slice(1)}`;
  const type = of !== REFERENCE && PRIMITIVES.has(item) ? item : of;
  const list: unknown[] = [];
  reader.children(() => list.push(decode(reader, type)));
  return list;
}

/** An enumeration reads as the text it is. */
function decodeUnknown(reader: Reader, said: string | undefined): unknown {
  if (!reader.isEmpty && reader.isLeaf) return reader.text();
  reader.skip();
  return said === undefined ? undefined : { _type: said };
}
