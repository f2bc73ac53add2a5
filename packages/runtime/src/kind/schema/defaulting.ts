import { isJsonObject, type JsonObject } from './json.ts';
import type { Schema } from './schema.ts';

const TYPE_AND_METADATA = ['apiVersion', 'kind', 'metadata'];

/**
 * Returns a copy of a value as the API server would store it. Drops undeclared fields and nulls that are not allowed,
 * and sets defaults. Keeps values of a wrong type, so that the validation reports them.
 */
export function pruneAndDefault(schema: Schema | undefined, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => pruneAndDefaultField(schema?.items, item));
  return isJsonObject(value) && schema !== undefined ? pruneAndDefaultObject(schema, value) : value;
}

function pruneAndDefaultObject(schema: Schema, value: JsonObject): JsonObject {
  const { properties = {} } = schema;
  // Built from entries, so that a field named __proto__ is an ordinary field.
  const entries: [string, unknown][] = [];
  for (const [name, part] of Object.entries(value)) {
    const known = fieldSchema(schema, name);
    if (known === undefined) {
      if (isPreserved(schema, name)) entries.push([name, part]);
    } else if (part !== null || known.nullable || known.default !== undefined) {
      entries.push([name, pruneAndDefaultField(known, part)]);
    }
  }
  for (const [name, field] of Object.entries(properties))
    if (field.default !== undefined && !Object.hasOwn(value, name))
      entries.push([name, pruneAndDefaultField(field, null)]);
  return Object.fromEntries(entries);
}

function pruneAndDefaultField(schema: Schema | undefined, value: unknown): unknown {
  const absent = value === null && schema !== undefined && !schema.nullable;
  return pruneAndDefault(schema, absent ? structuredClone(schema.default ?? null) : value);
}

/** Returns the schema of a field. In a map, all values have the same schema (`additionalProperties`). */
export function fieldSchema(
  { properties = {}, additionalProperties }: Schema,
  name: string,
): Schema | undefined {
  return Object.hasOwn(properties, name) ? properties[name] : additionalProperties;
}

/** Whether a field that the schema does not declare is kept. */
export function isPreserved(schema: Schema, name: string): boolean {
  return (
    schema['x-kubernetes-preserve-unknown-fields'] === true ||
    (schema['x-kubernetes-embedded-resource'] === true && TYPE_AND_METADATA.includes(name))
  );
}
