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
  const read: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(isRecord(query) ? query : {})) {
    const type = schemas[name]?.type;
    if (type === 'array') read[name] = Array.isArray(value) ? value : [value];
    else if (type === 'integer' && typeof value === 'string' && /^-?\d+$/.test(value))
      read[name] = Number(value);
    else read[name] = value;
  }
  return read;
}
