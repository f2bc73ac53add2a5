import { InvalidRequestError } from '../errors.ts';
import { type Field, type TypeInfo, typeNamed } from '../schema/schema.ts';
import { isNewer } from '../soap/versions.ts';
import { PRIMITIVES } from './primitives.ts';
import { escaped } from './text.ts';

/** The element that a value is written to. */
interface Target {
  /** Name of the element. */
  readonly tag: string;
  /** Name of the value in errors: `VirtualMachineCloneSpec.powerOn`. */
  readonly path: string;
  /** Declared type. */
  readonly type: string;
  /** Whether `xsi:type` is written even when the value has the declared type. */
  readonly isTyped: boolean;
}

/**
 * Encodes a value as XML, with its elements in the order of the schema.
 *
 * @throws InvalidRequestError for a value that does not match its type, and for fields and types newer than `version`.
 *   Without this check, vCenter would reject the whole request and name only the position of the field in the XML
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

  value(target: Target, value: unknown): string {
    const { tag, path, type, isTyped } = target;
    if (type === 'anyType') return this.#any(target, value);
    if (type === 'ManagedObjectReference') return encodeReference(tag, path, value, isTyped);
    const primitive = PRIMITIVES.get(type);
    if (primitive !== undefined) {
      const text = primitive.write(value);
      if (text === undefined)
        throw new InvalidRequestError(`${path} must be of type ${type}, not ${describeValue(value)}`);
      return `<${tag}${isTyped ? ` xsi:type="xsd:${type}"` : ''}>${escaped(text, path)}</${tag}>`;
    }
    if (!isObject(value)) throw new InvalidRequestError(`${path} must be an object of type ${type}`);
    const own = typeof value._type === 'string' ? value._type : type;
    return this.#object(target, this.#typeInfo(own, path), value, isTyped || own !== type);
  }

  #typeInfo(name: string, path: string): TypeInfo {
    const info = typeNamed(name);
    if (info === undefined)
      throw new InvalidRequestError(`${path} is of type ${name}, which this client does not know`);
    this.#assertSupported(info.since, `${path}: the type ${name}`);
    return info;
  }

  #object({ tag }: Target, info: TypeInfo, value: Record<string, unknown>, isTyped: boolean): string {
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
    this.#assertSupported(since, path);
    const target = { tag: name, path, type, isTyped };
    if (!isList) return this.value(target, content);
    if (!Array.isArray(content)) throw new InvalidRequestError(`${path} must be a list`);
    return content.map((item) => this.value(target, item)).join('');
  }

  /** Encodes a value of a field with the declared type `anyType`. */
  #any(target: Target, value: unknown): string {
    return this.value({ ...target, type: typeOf(value, target.path), isTyped: true }, value);
  }

  #assertSupported(since: string | undefined, name: string): void {
    if (since === undefined || !isNewer(since, this.#version)) return;
    throw new InvalidRequestError(
      `${name} requires API version ${since}, but version ${this.#version} is used with this vCenter`,
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
  throw new InvalidRequestError(
    `the type of ${path} cannot be derived from ${describeValue(value)}: set _type`,
  );
}

function encodeReference(tag: string, path: string, value: unknown, isTyped: boolean): string {
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

/** Describes a value without its text, which may be a secret. */
function describeValue(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : `a value of type ${typeof value}`;
}
