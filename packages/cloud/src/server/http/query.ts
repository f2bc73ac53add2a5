import { isRecord } from '../../api/record.ts';
import type { Schema } from './schemas.ts';

/**
 * A query's texts as what their schema says they are: one `label` is a list of one, `limit` a number. What cannot be so
 * stays a text, which the schema then refuses.
 */
export function readQuery(
  schemas: Readonly<Record<string, Schema>>,
  query: unknown,
): Record<string, unknown> {
  const entries = Object.entries(isRecord(query) ? query : {});
  // Defined and not assigned: the client chooses the names, and assigning to `__proto__` would hide it from the schema.
  return Object.fromEntries(entries.map(([name, value]) => [name, readValue(schemas, name, value)]));
}

function readValue(schemas: Readonly<Record<string, Schema>>, name: string, value: unknown): unknown {
  const type = Object.hasOwn(schemas, name) ? schemas[name]?.type : undefined;
  if (type === 'array') return Array.isArray(value) ? value : [value];
  if (type === 'integer' && typeof value === 'string' && /^-?\d+$/.test(value)) return Number(value);
  return value;
}
