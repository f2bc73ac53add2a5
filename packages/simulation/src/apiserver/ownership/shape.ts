import type { schema } from '@vmwright/runtime';
import { isJson } from '../json.ts';

/** Structure of a value for server-side apply. It determines which parts have their own owners. */
export type Shape =
  | { readonly is: 'scalar' }
  | {
      readonly is: 'map';
      /** Whether the map is owned as a whole. */
      readonly atomic: boolean;
      /** Shapes of the declared fields; all other fields have the shape `rest`. */
      readonly fields: Readonly<Record<string, Shape>>;
      readonly rest: Shape | undefined;
    }
  | { readonly is: 'list'; readonly keyedBy: 'nothing' | 'value' | readonly string[]; readonly items: Shape }
  /** Undeclared. The shape is deduced from the value: maps are owned by key, lists as a whole. */
  | { readonly is: 'deduced' };

export type MapShape = Extract<Shape, { is: 'map' }>;
export type ListShape = Extract<Shape, { is: 'list' }>;
/** A shape that is declared or was deduced from a value. */
export type KnownShape = Exclude<Shape, { is: 'deduced' }>;

const SCALAR: Shape = { is: 'scalar' };
const DEDUCED: Shape = { is: 'deduced' };
const DEDUCED_LIST: KnownShape = { is: 'list', keyedBy: 'nothing', items: DEDUCED };
const DEDUCED_MAP: KnownShape = { is: 'map', atomic: false, fields: {}, rest: DEDUCED };

/**
 * Fallback for an undeclared field. It is not needed in practice, because such a field is dropped or rejected earlier.
 */
const UNKNOWN = DEDUCED;

function mapOf(rest: Shape): Shape {
  return { is: 'map', atomic: false, fields: {}, rest };
}

function struct(fields: Readonly<Record<string, Shape>>): MapShape {
  return { is: 'map', atomic: false, fields, rest: undefined };
}

/** Shape of `metadata`, the same for all kinds. */
const METADATA = struct({
  name: SCALAR,
  generateName: SCALAR,
  namespace: SCALAR,
  uid: SCALAR,
  resourceVersion: SCALAR,
  generation: SCALAR,
  creationTimestamp: SCALAR,
  deletionTimestamp: SCALAR,
  deletionGracePeriodSeconds: SCALAR,
  selfLink: SCALAR,
  labels: mapOf(SCALAR),
  annotations: mapOf(SCALAR),
  finalizers: { is: 'list', keyedBy: 'value', items: SCALAR },
  ownerReferences: {
    is: 'list',
    keyedBy: ['uid'],
    items: {
      is: 'map',
      atomic: true,
      fields: {},
      rest: DEDUCED,
    },
  },
});

export function objectShape(root: schema.Schema): MapShape {
  const { fields } = shapeOfMap(root);
  return struct({ ...fields, apiVersion: SCALAR, kind: SCALAR, metadata: METADATA });
}

function shapeOf(node: schema.Schema): Shape {
  if (node['x-kubernetes-int-or-string']) return SCALAR;
  if (node.type === 'object') return shapeOfMap(node);
  if (node.type === 'array') {
    const list = node['x-kubernetes-list-type'] ?? 'atomic';
    const keys = node['x-kubernetes-list-map-keys'] ?? [];
    const items = node.items === undefined ? DEDUCED : shapeOf(node.items);
    return { is: 'list', keyedBy: list === 'atomic' ? 'nothing' : list === 'set' ? 'value' : keys, items };
  }
  return node.type === undefined ? DEDUCED : SCALAR;
}

function shapeOfMap(node: schema.Schema): MapShape {
  const fields: Record<string, Shape> = {};
  for (const [name, part] of Object.entries(node.properties ?? {})) fields[name] = shapeOf(part);
  const open = node['x-kubernetes-preserve-unknown-fields'] ? DEDUCED : undefined;
  const rest = node.additionalProperties === undefined ? open : shapeOf(node.additionalProperties);
  return { is: 'map', atomic: node['x-kubernetes-map-type'] === 'atomic', fields, rest };
}

/** Resolves the shape for two states of a value; an undeclared shape is deduced from the newer state. */
export function known(shape: Shape, before: unknown, after: unknown): KnownShape {
  if (shape.is !== 'deduced') return shape;
  const value = after ?? before;
  if (Array.isArray(value)) return DEDUCED_LIST;
  return isJson(value) ? DEDUCED_MAP : { is: 'scalar' };
}

export function fieldShape(shape: MapShape, name: string): Shape {
  return (Object.hasOwn(shape.fields, name) ? shape.fields[name] : shape.rest) ?? UNKNOWN;
}

/** Returns the path step that identifies an item within its list. */
export function stepOfItem({ keyedBy }: ListShape, item: unknown): string {
  if (keyedBy === 'value') return `v:${JSON.stringify(item)}`;
  const keys: Record<string, unknown> = {};
  if (Array.isArray(keyedBy) && isJson(item))
    for (const key of [...keyedBy].sort()) if (item[key] !== undefined) keys[key] = item[key];
  return `k:${JSON.stringify(keys)}`;
}

/** Returns the path of the first undeclared field in a value. An apply of such a field is rejected. */
export function undeclared(shape: Shape, value: unknown, path = ''): string | undefined {
  if (shape.is === 'map' && isJson(value)) {
    for (const name in value) {
      const at = `${path}.${name}`;
      if (!Object.hasOwn(shape.fields, name) && shape.rest === undefined) return at;
      const within = undeclared(fieldShape(shape, name), value[name], at);
      if (within !== undefined) return within;
    }
  } else if (shape.is === 'list' && Array.isArray(value)) {
    for (const item of value) {
      const within = undeclared(shape.items, item, `${path}[]`);
      if (within !== undefined) return within;
    }
  }
  return undefined;
}
