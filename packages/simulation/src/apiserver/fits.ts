import type { schema } from '@vmwright/runtime';
import { isJson } from './json.ts';

type Fits = (value: unknown) => boolean;
type Schema = schema.Schema;

const CACHE = new WeakMap<Schema, Fits>();

/**
 * Whether a value matches its schema and the API server would store it unchanged. This is a fast path for nearly all
 * writes. If it returns false, the caller uses `schema.admit`, which sets defaults, drops unknown fields and reports
 * errors. Even then, the value may turn out to be valid and unchanged.
 */
export function fits(node: Schema, value: unknown): boolean {
  return fitterOf(node)(value);
}

/** Returns the compiled check of a schema; compiles it once per schema. */
function fitterOf(node: Schema): Fits {
  const cached = CACHE.get(node);
  if (cached !== undefined) return cached;
  const fitter = isPlain(node) ? plainFitter(node) : () => false;
  CACHE.set(node, fitter);
  return fitter;
}

const OPEN = 'x-kubernetes-preserve-unknown-fields';
/** Keywords supported by the fast path. Values of a schema with any other keyword go through `schema.admit`. */
const PLAIN = new Set([
  'type',
  'description',
  'properties',
  'required',
  'additionalProperties',
  'items',
  'enum',
  'minimum',
  'default',
  'x-kubernetes-list-type',
  OPEN,
]);

function isPlain(node: Schema): boolean {
  if (node['x-kubernetes-list-type'] !== undefined && node['x-kubernetes-list-type'] !== 'atomic')
    return false;
  return Object.keys(node).every((rule) => PLAIN.has(rule));
}

function plainFitter(node: Schema): Fits {
  const { type, enum: choices, minimum = Number.NEGATIVE_INFINITY } = node;
  switch (type) {
    case 'object':
      return objectFitter(node);
    case 'array': {
      const fitsItem = node.items === undefined ? undefined : fitterOf(node.items);
      return (value) => fitsItem !== undefined && Array.isArray(value) && value.every(fitsItem);
    }
    case 'string':
      return (value) =>
        typeof value === 'string' && (choices === undefined || choices.some((choice) => choice === value));
    case 'integer':
      return (value) => choices === undefined && Number.isSafeInteger(value) && Number(value) >= minimum;
    case 'boolean':
      return (value) => choices === undefined && typeof value === 'boolean';
    case undefined:
      return (value) => isOpen(node) && value !== null && value !== undefined;
    default:
      return () => false;
  }
}

/** Whether the schema accepts every value unchanged. */
function isOpen(node: Schema): boolean {
  return Object.keys(node).every((rule) => rule === OPEN || rule === 'description');
}

function objectFitter({
  properties = {},
  additionalProperties,
  required = [],
  [OPEN]: isOpen,
}: Schema): Fits {
  if (isOpen) return () => false;
  const fields = new Map(Object.entries(properties).map(([name, node]) => [name, fitterOf(node)]));
  const others = additionalProperties === undefined ? undefined : fitterOf(additionalProperties);
  // A missing field with a default would be filled in, so the value would not be stored unchanged.
  const defaults = Object.entries(properties).flatMap(([name, node]) =>
    node.default === undefined ? [] : [name],
  );
  const needed = [...new Set([...required, ...defaults])];
  return (value) => {
    if (!isJson(value)) return false;
    for (const name in value) {
      const fitsField = fields.get(name) ?? others;
      if (fitsField === undefined || !fitsField(value[name])) return false;
    }
    return needed.every((name) => Object.hasOwn(value, name));
  };
}
