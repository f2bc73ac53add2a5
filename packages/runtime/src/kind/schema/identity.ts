import { fieldSchema } from './defaulting.ts';
import { canonical, isJsonObject, type JsonObject } from './json.ts';
import { duplicate, joinPath, missing, type Problem, rejected } from './problem.ts';
import type { Schema } from './schema.ts';

/**
 * Yields duplicate items of sets and list maps, and invalid type information of embedded objects. This is a separate
 * traversal, because the paths differ: only for these problems, the API server writes map keys in brackets.
 */
export function* identityProblems(schema: Schema, value: unknown, field: string): Generator<Problem> {
  if (Array.isArray(value)) {
    yield* listProblems(schema, value, field);
    if (schema.items !== undefined)
      for (const [index, item] of value.entries())
        yield* identityProblems(schema.items, item, `${field}[${index}]`);
  } else if (isJsonObject(value)) {
    if (schema['x-kubernetes-embedded-resource']) yield* embeddedProblems(value, field);
    for (const [name, part] of Object.entries(value)) {
      const known = fieldSchema(schema, name);
      const at = schema.additionalProperties ? `${field}[${name}]` : joinPath(field, name);
      if (known !== undefined) yield* identityProblems(known, part, at);
    }
  }
}

/** Yields duplicate items of a set or list map. */
function* listProblems(schema: Schema, value: readonly unknown[], field: string): Generator<Problem> {
  const keys = schema['x-kubernetes-list-map-keys'];
  if (schema['x-kubernetes-list-type'] === 'set') {
    yield* duplicates(value, field);
  } else if (keys !== undefined) {
    const odd = value.findIndex((item) => item !== null && !isJsonObject(item));
    if (odd === -1)
      yield* duplicates(
        value.map((item) => pick(item, keys)),
        field,
      );
    else yield rejected(`${field}[${odd}]`, value[odd], 'must be an object for an array of list-type map');
  }
}

/** Yields each duplicate value once, at its second position. */
function* duplicates(values: readonly unknown[], field: string): Generator<Problem> {
  const seen = new Map<string, number>();
  for (const [index, value] of values.entries()) {
    const key = canonical(value);
    const times = seen.get(key) ?? 0;
    if (times === 1) yield duplicate(`${field}[${index}]`, value);
    seen.set(key, times + 1);
  }
}

function pick(item: unknown, keys: readonly string[]): JsonObject {
  const named = isJsonObject(item) ? item : {};
  return Object.fromEntries(keys.filter((key) => Object.hasOwn(named, key)).map((key) => [key, named[key]]));
}

function* embeddedProblems(value: JsonObject, field: string): Generator<Problem> {
  const { apiVersion, kind, metadata } = value;
  for (const [name, part] of Object.entries({ apiVersion, kind })) {
    const at = joinPath(field, name);
    if (part === undefined) yield missing(at);
    else if (typeof part !== 'string') yield rejected(at, part, 'must be a string');
    else if (part === '') yield rejected(at, part, 'must not be empty');
  }
  if (typeof apiVersion === 'string' && apiVersion.split('/').length > 2)
    yield rejected(
      joinPath(field, 'apiVersion'),
      apiVersion,
      `unexpected GroupVersion string: ${apiVersion}`,
    );
  if (typeof kind === 'string' && kind !== '' && !/^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/i.test(kind))
    yield rejected(
      joinPath(field, 'kind'),
      kind,
      'must have at most 63 letters, digits and hyphens, begin with a letter and not end with a hyphen',
    );
  if (metadata !== undefined && !isJsonObject(metadata))
    yield rejected(joinPath(field, 'metadata'), metadata, 'must be an object');
}
