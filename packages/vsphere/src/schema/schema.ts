import { SINCE, SUBTYPES, TYPES } from '../vim25/schema.generated.ts';

/** An element of a type. */
export interface Field {
  readonly name: string;
  /** A type, or one of XML's own: `string`, `int`, `anyType`. */
  readonly type: string;
  readonly isList: boolean;
  /** A subtype may stand there, so it is written with its type. */
  readonly isTyped: boolean;
  readonly isOptional: boolean;
  /** The first version of the API that knows it, where that is younger than 6.7. */
  readonly since: string | undefined;
}

export interface TypeInfo {
  readonly name: string;
  readonly base: TypeInfo | undefined;
  /** In the order of the WSDL, the base's first. vCenter refuses any other. */
  readonly fields: readonly Field[];
  readonly byName: ReadonlyMap<string, Field>;
  readonly since: string | undefined;
}

const read = new Map<string, TypeInfo>();
let bases: Map<string, string> | undefined;

/** A type that we know with all its fields. */
export function typeNamed(name: string): TypeInfo | undefined {
  const known = read.get(name);
  if (known !== undefined) return known;
  const text = Object.hasOwn(TYPES, name) ? TYPES[name] : undefined;
  if (text === undefined) return undefined;
  const info = parsed(name, text);
  read.set(name, info);
  return info;
}

/** The type, or the nearest base of it that we know; none for a type that is younger than what we know. */
export function nearestTo(name: string): TypeInfo | undefined {
  bases ??= new Map(
    Object.entries(SUBTYPES).flatMap(([base, names]) => names.split(' ').map((each) => [each, base])),
  );
  const direct = typeNamed(name) ?? typeNamed(bases.get(name) ?? '');
  // The simulator names some faults by the element that carries them: InvalidPowerStateFault.
  if (direct !== undefined || !name.endsWith('Fault')) return direct;
  // Only one suffix is removed: the name comes from the server and may repeat it a million times.
  const fault = name.slice(0, -'Fault'.length);
  return typeNamed(fault) ?? typeNamed(bases.get(fault) ?? '');
}

/** Whether one of the first name is one of the second too. */
export function isKindOf(name: string, base: string): boolean {
  if (name === base) return true;
  for (let info = nearestTo(name); info !== undefined; info = info.base) if (info.name === base) return true;
  return false;
}

/** All that we know, for those who go through it. */
export function typeNames(): readonly string[] {
  return Object.keys(TYPES);
}

function parsed(name: string, text: string): TypeInfo {
  const [baseName = '', ...words] = text.split(' ');
  const base = baseName === '' ? undefined : typeNamed(baseName);
  const fields = [...(base?.fields ?? []), ...words.filter((word) => word !== '').map(fieldFrom)];
  return {
    name,
    base,
    fields,
    byName: new Map(fields.map((field) => [field.name, field])),
    since: SINCE[name],
  };
}

/** From `name:type*^?@8.0.1.0`. */
function fieldFrom(word: string): Field {
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
