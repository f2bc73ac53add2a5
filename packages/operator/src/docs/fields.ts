import type { schema } from '@vmwright/runtime';

/** A field of a spec or status, for the documentation. */
export interface FieldDoc {
  /** Path in the spec or status: `users[].name`. */
  readonly path: string;
  /** Type with its limits, as Markdown: `integer, 1 to 768`. */
  readonly type: string;
  /** Default as JSON, or `required`; empty without either. */
  readonly byDefault: string;
  readonly description: string;
}

/** A rule that the API server checks, for the documentation. */
export interface RuleDoc {
  readonly path: string;
  readonly message: string;
}

/** Maximum number of names in a path. What is deeper is the content of a Kubernetes field that its parent describes. */
const MAX_DEPTH = 3;

/** Returns the fields of an object, each followed by its own fields. Conditions have a table of their own. */
export function fieldsOf(object: schema.SchemaNode, parent = ''): readonly FieldDoc[] {
  return Object.entries(object.properties ?? {}).flatMap(([name, node]) => {
    const path = parent === '' ? name : `${parent}.${name}`;
    const isRequired = object.required?.includes(name) === true && node.default === undefined;
    const byDefault =
      node.default !== undefined ? JSON.stringify(node.default) : isRequired ? 'required' : '';
    const field = { path, type: typeOf(node), byDefault, description: node.description ?? '' };
    const inner = node.items?.properties ? node.items : node;
    const isLeaf = name === 'conditions' || path.split('.').length === MAX_DEPTH;
    return [field, ...(isLeaf ? [] : fieldsOf(inner, inner === node ? path : `${path}[]`))];
  });
}

/** Returns the rules of an object and of its fields that have a message. */
export function rulesOf(object: schema.SchemaNode, parent = ''): readonly RuleDoc[] {
  const own = (object['x-kubernetes-validations'] ?? []).flatMap(({ message, fieldPath = '' }) => {
    const path = `${parent}${fieldPath}`.replace(/^\./, '');
    return message === undefined ? [] : [{ path, message }];
  });
  const fields = Object.entries(object.properties ?? {}).flatMap(([name, node]) =>
    rulesOf(node, parent === '' ? name : `${parent}.${name}`),
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
