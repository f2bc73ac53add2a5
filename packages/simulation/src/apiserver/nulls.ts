import type { schema } from '@vmwright/runtime';
import type { FieldError } from './errors.ts';
import { isJson } from './json.ts';

/**
 * Returns the validation errors for nulls that an apply leaves where it emptied a map or list. The API server keeps
 * such a null and then rejects its own result. In other writes, it drops a null that the schema does not allow.
 * @param subresource the subresource that is written: `status`, or empty
 */
export function nullProblems(
  node: schema.Schema,
  value: unknown,
  subresource: string,
  field = '',
): FieldError[] {
  if (value === null) {
    if (node.nullable || node.type === undefined || node.default !== undefined) return [];
    // If a write of the subresource `status` makes the whole status null, the API server's message has no field name.
    const message = `Invalid value: "null": ${field === subresource ? '' : field} in body must be of type ${node.type}: "null"`;
    return [{ field, reason: 'FieldValueTypeInvalid', message }];
  }
  if (Array.isArray(value)) {
    const { items } = node;
    return items === undefined
      ? []
      : value.flatMap((item, index) => nullProblems(items, item, subresource, `${field}[${index}]`));
  }
  if (!isJson(value)) return [];
  const problems: FieldError[] = [];
  for (const name in value) {
    const part = node.properties?.[name] ?? node.additionalProperties;
    const at = field === '' ? name : `${field}.${name}`;
    if (part !== undefined) problems.push(...nullProblems(part, value[name], subresource, at));
  }
  return problems;
}
