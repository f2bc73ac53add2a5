import type { schema } from '@vmwright/runtime';
import { isJson } from './json.ts';
import type { Wrong } from './refusal.ts';

/**
 * Maps that an apply has left with nothing, as null: other ways of writing drop nulls where they are not allowed, this one
 * does not, and the server then refuses what it has made itself.
 * @param apart the field that is written apart: `status`
 */
export function nullProblems(node: schema.Schema, value: unknown, apart: string, field = ''): Wrong[] {
  if (value === null) {
    if (node.nullable || node.type === undefined || node.default !== undefined) return [];
    // Where the status alone is checked, its own name is missing in the sentence.
    const message = `Invalid value: "null": ${field === apart ? '' : field} in body must be of type ${node.type}: "null"`;
    return [{ field, reason: 'FieldValueTypeInvalid', message }];
  }
  if (Array.isArray(value)) {
    const { items } = node;
    return items === undefined
      ? []
      : value.flatMap((item, index) => nullProblems(items, item, apart, `${field}[${index}]`));
  }
  if (!isJson(value)) return [];
  const problems: Wrong[] = [];
  for (const name in value) {
    const part = node.properties?.[name] ?? node.additionalProperties;
    const at = field === '' ? name : `${field}.${name}`;
    if (part !== undefined) problems.push(...nullProblems(part, value[name], apart, at));
  }
  return problems;
}
