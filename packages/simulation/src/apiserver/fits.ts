import type { schema } from '@vmwright/runtime';
import { isJson } from './json.ts';

type Fits = (value: unknown) => boolean;
type Schema = schema.Schema;

const KNOWN = new WeakMap<Schema, Fits>();

/**
 * Whether a value plainly fits its schema, so that the API server would store it as it is: the quick way for what nearly
 * all writes are, before `schema.admit` fills, drops and finds words for what is wrong. Says no where it is not sure.
 */
export function fits(node: Schema, value: unknown): boolean {
  return fitterOf(node)(value);
}

/** Made once for each schema. */
function fitterOf(node: Schema): Fits {
  const known = KNOWN.get(node);
  if (known !== undefined) return known;
  const made = isPlain(node) ? plainFitter(node) : () => false;
  KNOWN.set(node, made);
  return made;
}

/** All that this knows how to look at; whoever adds another rule to a schema gets the slow way. */
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
    default:
      return () => false;
  }
}

function objectFitter({ properties = {}, additionalProperties, required = [] }: Schema): Fits {
  const fields = new Map(Object.entries(properties).map(([name, node]) => [name, fitterOf(node)]));
  const others = additionalProperties === undefined ? undefined : fitterOf(additionalProperties);
  // A field with a default is there in the end in any case: without it, the value is not yet as it is stored.
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
