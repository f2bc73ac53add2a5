import type { StoredObject } from '../apiserver/object.ts';

/** Returns a field of a stored object; undefined if any part of its path is missing. */
export function at(object: unknown, ...path: readonly string[]): unknown {
  let value = object;
  for (const field of path)
    value = typeof value === 'object' && value !== null ? Reflect.get(value, field) : undefined;
  return value;
}

export function numberAt(object: unknown, ...path: readonly string[]): number {
  return Number(at(object, ...path) ?? 0);
}

export function textAt(object: unknown, ...path: readonly string[]): string | undefined {
  const value = at(object, ...path);
  return typeof value === 'string' ? value : undefined;
}

export function hasFinalizer(object: StoredObject | undefined, finalizer: string): boolean {
  return object?.metadata.finalizers?.includes(finalizer) ?? false;
}

export function storedKey({ metadata: { namespace = '', name } }: StoredObject): string {
  return `${namespace}/${name}`;
}
