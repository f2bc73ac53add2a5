import { isDeepStrictEqual } from 'node:util';
import type { JsonPatchOperation } from '../client/options.ts';
import { isJsonObject, type JsonObject } from '../kind/schema/json.ts';

/**
 * Returns the JSON patch (RFC 6902) from one JSON value to another; empty if they are equal. Keeps the common prefix
 * and suffix of two arrays, so that inserting or removing an item is one operation.
 */
export function jsonPatch(before: unknown, after: unknown): JsonPatchOperation[] {
  return [...differences(before, after, '')];
}

/** Escapes a field name for a JSON pointer (RFC 6901). */
function pathSegment(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

function* differences(before: unknown, after: unknown, path: string): Generator<JsonPatchOperation> {
  if (isDeepStrictEqual(before, after)) return;
  if (Array.isArray(before) && Array.isArray(after)) yield* inArray(before, after, path);
  else if (isJsonObject(before) && isJsonObject(after)) yield* inObject(before, after, path);
  else yield { op: 'replace', path, value: after };
}

function* inObject(before: JsonObject, after: JsonObject, path: string): Generator<JsonPatchOperation> {
  for (const [name, value] of Object.entries(before)) {
    const at = `${path}/${pathSegment(name)}`;
    if (Object.hasOwn(after, name)) yield* differences(value, after[name], at);
    else yield { op: 'remove', path: at };
  }
  for (const [name, value] of Object.entries(after))
    if (!Object.hasOwn(before, name)) yield { op: 'add', path: `${path}/${pathSegment(name)}`, value };
}

function* inArray(
  before: readonly unknown[],
  after: readonly unknown[],
  path: string,
): Generator<JsonPatchOperation> {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && isDeepStrictEqual(before[start], after[start])) start += 1;
  let tail = 0;
  while (tail < shorter - start && isDeepStrictEqual(before.at(-1 - tail), after.at(-1 - tail))) tail += 1;
  const [old, wanted] = [before.slice(start, before.length - tail), after.slice(start, after.length - tail)];

  const both = Math.min(old.length, wanted.length);
  for (let index = 0; index < both; index += 1)
    yield* differences(old[index], wanted[index], `${path}/${start + index}`);
  // Remove from the end, because each removal shifts the items behind it.
  for (let index = old.length - 1; index >= both; index -= 1)
    yield { op: 'remove', path: `${path}/${start + index}` };
  for (let index = both; index < wanted.length; index += 1)
    yield { op: 'add', path: `${path}/${start + index}`, value: wanted[index] };
}
