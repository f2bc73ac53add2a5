import { SINCE, SUBTYPES, TYPES } from '../vim25/schema.generated.ts';

/** A field of a type. It is encoded as an XML element. */
export interface Field {
  readonly name: string;
  /** Name of a type, or an XML Schema type: `string`, `int`, `anyType`. */
  readonly type: string;
  readonly isList: boolean;
  /** Whether the value may be of a subtype. `xsi:type` is then always written. */
  readonly isTyped: boolean;
  readonly isOptional: boolean;
  /** API version that introduced the field; undefined for 6.7 and older versions. */
  readonly since: string | undefined;
}

export interface TypeInfo {
  readonly name: string;
  readonly base: TypeInfo | undefined;
  /** Fields in the order of the WSDL, those of the base type first. vCenter rejects any other order. */
  readonly fields: readonly Field[];
  readonly byName: ReadonlyMap<string, Field>;
  readonly since: string | undefined;
}

const parsedTypes = new Map<string, TypeInfo>();
let bases: Map<string, string> | undefined;

/** Returns a type of the schema. */
export function typeNamed(name: string): TypeInfo | undefined {
  const known = parsedTypes.get(name);
  if (known !== undefined) return known;
  const text = Object.hasOwn(TYPES, name) ? TYPES[name] : undefined;
  if (text === undefined) return undefined;
  const info = parseType(name, text);
  parsedTypes.set(name, info);
  return info;
}

/**
 * Returns the type with this name. If the schema lists only the name of the type, returns its nearest base type with
 * fields. Returns undefined for a type that is newer than the schema.
 */
export function nearestKnownType(name: string): TypeInfo | undefined {
  bases ??= new Map(
    Object.entries(SUBTYPES).flatMap(([base, names]) => names.split(' ').map((each) => [each, base])),
  );
  const direct = typeNamed(name) ?? typeNamed(bases.get(name) ?? '');
  // vcsim names some faults by the element that contains them (InvalidPowerStateFault), so the suffix is removed.
  if (direct !== undefined || !name.endsWith('Fault')) return direct;
  // Only one suffix is removed. A loop that removes every suffix could run a million times, because the name comes from
  // the server.
  const fault = name.slice(0, -'Fault'.length);
  return typeNamed(fault) ?? typeNamed(bases.get(fault) ?? '');
}

/** Whether the type `name` is `base` or derives from it. */
export function isKindOf(name: string, base: string): boolean {
  if (name === base) return true;
  for (let info = nearestKnownType(name); info !== undefined; info = info.base)
    if (info.name === base) return true;
  return false;
}

/** Returns the names of all types of the schema. */
export function typeNames(): readonly string[] {
  return Object.keys(TYPES);
}

function parseType(name: string, text: string): TypeInfo {
  const [baseName = '', ...words] = text.split(' ');
  const base = baseName === '' ? undefined : typeNamed(baseName);
  const fields = [...(base?.fields ?? []), ...words.filter((word) => word !== '').map(parseField)];
  return {
    name,
    base,
    fields,
    byName: new Map(fields.map((field) => [field.name, field])),
    since: SINCE[name],
  };
}

/** Parses a field such as `name:type*^?@8.0.1.0`, where the flags and the version are optional. */
function parseField(word: string): Field {
  const [, name = '', type = '', flags = '', since] = /^(\w+):(\w+)([*^?]*)(?:@(.+))?$/.exec(word) ?? [];
  return {
    name,
    type,
    isList: flags.includes('*'),
    isTyped: flags.includes('^'),
    isOptional: flags.includes('?'),
    since,
  };
}
