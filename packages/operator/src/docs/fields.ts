import type { schema } from '@vmwright/runtime';

/** A field of a spec or status, for the documentation. */
export interface FieldDoc {
  /** Path in the spec or status: `users[].name`. */
  readonly path: string;
  /** Type with its limits, as Markdown: `integer, 1 to 768`. */
  readonly type: string;
  /** Default as JSON, or `required`; empty if the field is optional and has no default. */
  readonly byDefault: string;
  readonly description: string;
}

/** A rule that the API server checks, for the documentation. */
export interface RuleDoc {
  readonly path: string;
  readonly message: string;
}

/** Fields with subfields that other tables document: the table of conditions, and the spec of VMDiskImage. */
const LEAVES: ReadonlySet<string> = new Set(['conditions', 'vmDiskImageTemplate']);

/**
 * Returns the fields of an object, each followed by its own fields.
 * @param maxDepth maximum number of names in a path
 */
export function fieldsOf(object: schema.SchemaNode, maxDepth: number, parent = ''): readonly FieldDoc[] {
  return Object.entries(object.properties ?? {}).flatMap(([name, node]) => {
    const path = parent === '' ? name : `${parent}.${name}`;
    const isRequired = object.required?.includes(name) === true && node.default === undefined;
    const byDefault =
      node.default !== undefined ? JSON.stringify(node.default) : isRequired ? 'required' : '';
    const field = { path, type: typeOf(node), byDefault, description: node.description ?? '' };
    const inner = node.items?.properties ? node.items : node;
    const isLeaf = LEAVES.has(name) || path.split('.').length === maxDepth;
    return [field, ...(isLeaf ? [] : fieldsOf(inner, maxDepth, inner === node ? path : `${path}[]`))];
  });
}

/** Returns the rules of an object and of its fields, except rules without a message. */
export function rulesOf(object: schema.SchemaNode, parent = ''): readonly RuleDoc[] {
  const own = (object['x-kubernetes-validations'] ?? []).flatMap(({ message, fieldPath = '' }) => {
    const path = `${parent}${fieldPath}`.replace(/^\./, '');
    return message === undefined ? [] : [{ path, message }];
  });
  const fields = Object.entries(object.properties ?? {}).flatMap(([name, node]) =>
    LEAVES.has(name) ? [] : rulesOf(node, parent === '' ? name : `${parent}.${name}`),
  );
  const items = object.items === undefined ? [] : rulesOf(object.items, `${parent}[]`);
  return [...own, ...fields, ...items];
}

function typeOf(node: schema.SchemaNode): string {
  if (node.enum !== undefined) return node.enum.map((value) => `\`${value}\``).join(', ');
  if (node['x-kubernetes-int-or-string']) return 'integer or string';
  if (node.format === 'date-time') return 'time';
  if (node.additionalProperties !== undefined) return 'map';
  if (node.type === 'array') return node.items?.type === 'object' ? 'list' : `list of ${node.items?.type}s`;
  const { type = 'object', minimum, maximum } = node;
  if (minimum !== undefined && maximum !== undefined) return `${type}, ${minimum} to ${maximum}`;
  return minimum === undefined ? type : `${type}, at least ${minimum}`;
}
