import { fieldSchema, pruneAndDefault } from './defaulting.ts';
import { isFormat, isOfFormat } from './format.ts';
import { identityProblems } from './identity.ts';
import { isJsonObject, type JsonObject } from './json.ts';
import {
  invalid,
  joinPath,
  missing,
  type Problem,
  tooLong,
  tooMany,
  unsupported,
  wrongType,
} from './problem.ts';
import type { Schema } from './schema.ts';

/** Result of `admit`: the value as it would be stored, or the problems. */
export type Admission<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/**
 * Validates an external value like the API server does.
 *
 * Flow: drops unknown fields and nulls that are not allowed, sets defaults, then validates the result against the
 * schema.
 *
 * Guarantees: accepts the values that the API server accepts, and rejects all others with the API server's messages.
 * Only two values of a wrong type are rejected here and accepted by the API server:
 * - an array for a string with a format
 * - a number with a fraction for an integer, if the fraction divided by the number is below about 1e-9 (1234567890.5)
 *
 * Caveats: CEL rules are not evaluated. The metadata of an embedded object is only checked to be an object.
 *
 * @param at path of the value in messages: `spec`
 */
export function admit<T>(schema: Schema<T>, value: unknown, at = ''): Admission<T> {
  const stored = pruneAndDefault(schema, value);
  const problems = allProblems(schema, stored, at);
  return conforms(schema, stored, problems) ? { ok: true, value: stored } : { ok: false, problems };
}

/** Returns the problems of an external value; see `admit`. */
export function validate(schema: Schema, value: unknown, at = ''): readonly Problem[] {
  return allProblems(schema, pruneAndDefault(schema, value), at);
}

function conforms<T>(_schema: Schema<T>, _value: unknown, problems: readonly Problem[]): _value is T {
  return problems.length === 0;
}

function allProblems(schema: Schema, value: unknown, field: string): Problem[] {
  return [...schemaProblems(schema, value, field), ...identityProblems(schema, value, field)];
}

function schemaProblems(schema: Schema, value: unknown, field: string): Problem[] {
  const problems = [...typeProblems(schema, value, field)];
  if (schema.enum !== undefined && !schema.enum.some((choice) => choice === value))
    problems.push(unsupported(field, value, schema.enum));
  if (typeof value === 'string') problems.push(...stringProblems(schema, value, field));
  else if (typeof value === 'number') problems.push(...numberProblems(schema, value, field));
  else if (Array.isArray(value)) problems.push(...arrayProblems(schema, value, field));
  else if (isJsonObject(value)) problems.push(...objectProblems(schema, value, field));
  return problems;
}

function* typeProblems(schema: Schema, value: unknown, field: string): Generator<Problem> {
  const wanted = schema['x-kubernetes-int-or-string'] ? ['integer', 'string'] : schema.type && [schema.type];
  if (wanted === undefined || (value === null && schema.nullable)) return;
  const found = typeOf(value);
  if (wanted.includes(found) || (found === 'integer' && wanted.includes('number'))) return;
  // If the schema has a format, the message of the API server names formats instead of types.
  if (schema.format !== undefined && isFormat(schema.format) && found !== 'null' && found !== 'array')
    yield wrongType(
      field,
      schema.format,
      found === 'integer' ? 'int64' : found === 'number' ? 'float64' : '',
    );
  else yield wrongType(field, wanted.join(','), found);
}

function typeOf(value: unknown): string {
  if (value === null || value === undefined) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value !== 'number') return typeof value;
  // The API server parses integers beyond 64 bits as floating-point numbers. This includes -2^63, because JavaScript
  // serializes it as a rounded number beyond 64 bits.
  return Number.isInteger(value) && Math.abs(value) < 2 ** 63 ? 'integer' : 'number';
}

/**
 * Yields at most one violation of length or pattern, and at most one of the format. Like the API server, does not check
 * the pattern of a string that is too long or too short.
 */
function* stringProblems(schema: Schema, value: string, field: string): Generator<Problem> {
  const { minLength = 0, maxLength = Number.POSITIVE_INFINITY, pattern, format } = schema;
  const length = Iterator.from(value).reduce((count) => count + 1, 0);
  if (length > maxLength) yield tooLong(field, maxLength);
  else if (length < minLength) yield invalid(field, value, `be at least ${minLength} chars long`);
  else if (pattern !== undefined && !new RegExp(pattern, 'u').test(value))
    yield invalid(field, value, `match '${pattern}'`);
  if (format !== undefined && isFormat(format) && !isOfFormat(format, value))
    yield wrongType(field, format, value);
}

function* numberProblems({ minimum, maximum }: Schema, value: number, field: string): Generator<Problem> {
  // The API server truncates the bounds of integers, so 2 satisfies a minimum of 2.5.
  const bound = (limit: number) => (typeOf(value) === 'integer' ? Math.trunc(limit) : limit);
  if (minimum !== undefined && value < bound(minimum))
    yield invalid(field, value, `be greater than or equal to ${bound(minimum)}`);
  if (maximum !== undefined && value > bound(maximum))
    yield invalid(field, value, `be less than or equal to ${bound(maximum)}`);
}

function* arrayProblems(schema: Schema, value: readonly unknown[], field: string): Generator<Problem> {
  const { items, minItems = 0, maxItems = Number.POSITIVE_INFINITY } = schema;
  if (value.length < minItems) yield invalid(field, value.length, `have at least ${minItems} items`);
  if (value.length > maxItems) yield tooMany(field, value.length, maxItems);
  if (items !== undefined)
    for (const [index, item] of value.entries()) yield* schemaProblems(items, item, `${field}[${index}]`);
}

function* objectProblems(schema: Schema, value: JsonObject, field: string): Generator<Problem> {
  const { minProperties = 0, maxProperties = Number.POSITIVE_INFINITY, required = [] } = schema;
  const names = Object.keys(value);
  if (names.length < minProperties)
    yield invalid(field, names.length, `have at least ${minProperties} properties`);
  if (names.length > maxProperties) yield tooMany(field, names.length, maxProperties);
  for (const name of names) {
    const part = fieldSchema(schema, name);
    if (part !== undefined) yield* schemaProblems(part, value[name], joinPath(field, name));
  }
  for (const name of required) if (!Object.hasOwn(value, name)) yield missing(joinPath(field, name));
}
