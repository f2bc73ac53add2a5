import { InvalidRequestError } from '../errors.ts';
import { type Field, type TypeInfo, typeNamed } from '../schema/schema.ts';
import { isNewer } from '../soap/versions.ts';
import { PRIMITIVES } from './primitives.ts';
import { escaped } from './text.ts';

/** Where a value is to be written. */
interface Place {
  /** The element. */
  readonly tag: string;
  /** As it reads in an error: `VirtualMachineCloneSpec.powerOn`. */
  readonly path: string;
  /** The declared type. */
  readonly type: string;
  /** Whether its type is written though it is the declared one. */
  readonly isTyped: boolean;
}

/**
 * Writes a value as XML: its elements in the order of the schema, whatever that of its keys.
 *
 * @throws InvalidRequestError for a value that is none of its type, and for what is younger than `version`: vCenter
 *   would refuse the whole request, and say about what only by its place
 */
export function encode(tag: string, type: string, value: unknown, version: string): string {
  const path = type.startsWith('$') ? type.slice(1) : type;
  return new Encoder(version).value({ tag, path, type, isTyped: false }, value);
}

class Encoder {
  readonly #version: string;

  constructor(version: string) {
    this.#version = version;
  }

  value(place: Place, value: unknown): string {
    const { tag, path, type, isTyped } = place;
    if (type === 'anyType') return this.#any(place, value);
    if (type === 'ManagedObjectReference') return reference(tag, path, value, isTyped);
    const primitive = PRIMITIVES.get(type);
    if (primitive !== undefined) {
      const text = primitive.write(value);
      if (text === undefined)
        throw new InvalidRequestError(`${path} must be of type ${type}, not ${shown(value)}`);
      return `<${tag}${isTyped ? ` xsi:type="xsd:${type}"` : ''}>${escaped(text, path)}</${tag}>`;
    }
    if (!isObject(value)) throw new InvalidRequestError(`${path} must be an object of type ${type}`);
    const own = typeof value._type === 'string' ? value._type : type;
    return this.#object(place, this.#known(own, path), value, isTyped || own !== type);
  }

  #known(name: string, path: string): TypeInfo {
    const info = typeNamed(name);
    if (info === undefined)
      throw new InvalidRequestError(`${path} is of type ${name}, which this client does not know`);
    this.#refuseNewer(info.since, `${path}: the type ${name}`);
    return info;
  }

  #object({ tag }: Place, info: TypeInfo, value: Record<string, unknown>, isTyped: boolean): string {
    const name = info.name.startsWith('$') ? info.name.slice(1) : info.name;
    for (const key of Object.keys(value)) {
      if (key !== '_type' && !info.byName.has(key))
        throw new InvalidRequestError(`${name} has no field ${key}`);
    }
    let xml = `<${tag}${isTyped ? ` xsi:type="${info.name}"` : ''}>`;
    for (const field of info.fields) {
      const content = value[field.name];
      if (content !== undefined) xml += this.#field(`${name}.${field.name}`, field, content);
      else if (!field.isOptional) throw new InvalidRequestError(`${name}.${field.name} is missing`);
    }
    return `${xml}</${tag}>`;
  }

  #field(path: string, { name, type, isTyped, isList, since }: Field, content: unknown): string {
    this.#refuseNewer(since, path);
    const place = { tag: name, path, type, isTyped };
    if (!isList) return this.value(place, content);
    if (!Array.isArray(content)) throw new InvalidRequestError(`${path} must be a list`);
    return content.map((item) => this.value(place, item)).join('');
  }

  /** A value that says itself of what type it is. */
  #any(place: Place, value: unknown): string {
    return this.value({ ...place, type: typeOf(value, place.path), isTyped: true }, value);
  }

  #refuseNewer(since: string | undefined, what: string): void {
    if (since === undefined || !isNewer(since, this.#version)) return;
    throw new InvalidRequestError(
      `${what} is known to vCenter from API version ${since} on, and this one is spoken to in ${this.#version}`,
    );
  }
}

function typeOf(value: unknown, path: string): string {
  if (typeof value === 'string') return 'string';
  if (typeof value === 'boolean') return 'boolean';
  if (value instanceof Date) return 'dateTime';
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value)) return 'double';
    return Math.abs(value) < 2 ** 31 ? 'int' : 'long';
  }
  if (isObject(value) && typeof value._type === 'string') return value._type;
  if (isReference(value)) return 'ManagedObjectReference';
  throw new InvalidRequestError(`${path} is ${shown(value)}, whose type cannot be told: give its _type`);
}

function reference(tag: string, path: string, value: unknown, isTyped: boolean): string {
  if (!isReference(value)) throw new InvalidRequestError(`${path} must be a reference { type, value }`);
  const type = isTyped ? ' xsi:type="ManagedObjectReference"' : '';
  return `<${tag}${type} type="${escaped(value.type, path)}">${escaped(value.value, path)}</${tag}>`;
}

function isReference(value: unknown): value is { readonly type: string; readonly value: string } {
  return isObject(value) && typeof value.type === 'string' && typeof value.value === 'string';
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Without its content, which may be a secret. */
function shown(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : `a value of type ${typeof value}`;
}
