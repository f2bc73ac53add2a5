import { isRecord } from '../../api/record.ts';
import type { Schema } from './schemas.ts';

/**
 * Converts query parameters to the types of their schemas: a single `label` to an array, `limit` to a number. A value
 * that cannot be converted stays a string, which the schema then rejects.
 */
export function convertQuery(
  schemas: Readonly<Record<string, Schema>>,
  query: unknown,
): Record<string, unknown> {
  const entries = Object.entries(isRecord(query) ? query : {});
  // Do not assign fields one by one: clients choose the names, and a field assigned to `__proto__` would be hidden from
  // the schema validation.
  return Object.fromEntries(entries.map(([name, value]) => [name, convertValue(schemas, name, value)]));
}

function convertValue(schemas: Readonly<Record<string, Schema>>, name: string, value: unknown): unknown {
  const type = Object.hasOwn(schemas, name) ? schemas[name]?.type : undefined;
  if (type === 'array') return Array.isArray(value) ? value : [value];
  if (type === 'integer' && typeof value === 'string' && /^-?\d+$/.test(value)) return Number(value);
  return value;
}
