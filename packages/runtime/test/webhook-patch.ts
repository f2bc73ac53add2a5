import type { JsonPatchOperation } from '../src/client/options.ts';

/** Returns a copy of the value with a JSON patch applied, strictly by RFC 6902. */
export function applyPatch(value: unknown, patch: readonly JsonPatchOperation[]): unknown {
  const root = { '': structuredClone(value) };
  for (const operation of patch) apply(root, operation);
  return root[''];
}

function apply(root: object, { op, path, value }: JsonPatchOperation): void {
  // The document is the field '' of a root object, so that it can be replaced like any other field.
  const segments = path.split('/').map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  const last = segments.pop() ?? '';
  const at = segments.reduce<unknown>((parent, name) => child(parent, name), root);
  if (Array.isArray(at)) {
    const index = last === '-' ? at.length : Number(last);
    if (!Number.isInteger(index) || index > at.length - (op === 'add' ? 0 : 1))
      throw new Error(`no such location: ${path}`);
    if (op === 'add') at.splice(index, 0, value);
    else if (op === 'remove') at.splice(index, 1);
    else at[index] = value;
    return;
  }
  if (typeof at !== 'object' || at === null) throw new Error(`no such location: ${path}`);
  if (op !== 'add' && !Object.hasOwn(at, last)) throw new Error(`no such field: ${path}`);
  if (op === 'remove') Reflect.deleteProperty(at, last);
  else Object.defineProperty(at, last, { value, enumerable: true, configurable: true, writable: true });
}

function child(parent: unknown, name: string): unknown {
  if (typeof parent !== 'object' || parent === null || !Object.hasOwn(parent, name))
    throw new Error(`no such field: ${name}`);
  return Object.getOwnPropertyDescriptor(parent, name)?.value;
}
