import { fieldSchema, isPreserved } from './defaulting.ts';
import { isJsonObject } from './json.ts';
import type { Schema } from './schema.ts';

/**
 * Returns the paths of all fields that a schema does not declare, such as `spec.replica`. `admit` drops these fields,
 * as the API server does. A program that reads a file can reject them instead, because most of them are typos.
 * @param at path of the value
 */
export function unknownFields(schema: Schema, value: unknown, at = ''): readonly string[] {
  if (Array.isArray(value)) {
    const { items } = schema;
    return items === undefined
      ? []
      : value.flatMap((item, index) => unknownFields(items, item, `${at}[${index}]`));
  }
  if (!isJsonObject(value)) return [];
  return Object.entries(value).flatMap(([name, part]) => {
    const path = at === '' ? name : `${at}.${name}`;
    const known = fieldSchema(schema, name);
    if (known !== undefined) return unknownFields(known, part, path);
    return isPreserved(schema, name) ? [] : [path];
  });
}
