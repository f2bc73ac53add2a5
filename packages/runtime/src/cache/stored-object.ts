import { type KubeObject, keyOf } from '../kind/object.ts';
import type { CacheOptions } from './cache-options.ts';

/** The fields that a metadata-only cache keeps. */
const METADATA_FIELDS: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata']);

/** Returns an object without its managed fields, which are large, and without fields that the cache does not keep. */
export function leanObject<T extends KubeObject>(
  object: T,
  { metadataOnly = false }: Pick<CacheOptions<T>, 'metadataOnly'>,
): T {
  const { managedFields: _, ...metadata } = { managedFields: undefined, ...object.metadata };
  const lean = { ...object, metadata };
  if (metadataOnly)
    for (const part of Object.keys(lean)) if (!METADATA_FIELDS.has(part)) Reflect.deleteProperty(lean, part);
  return lean;
}

/**
 * Returns the result of the program's `transform`.
 * @throws the error of `transform`, or an error if its result is not an object
 */
export function transformed<T extends KubeObject>(
  object: T,
  { transform }: Pick<CacheOptions<T>, 'transform'>,
): T {
  if (transform === undefined) return object;
  const result = transform(object);
  keyOf(result.metadata); // throws if the result is not an object with metadata
  return result;
}
