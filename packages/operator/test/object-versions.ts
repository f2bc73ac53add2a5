import type { Cluster, KubeObject } from '@vmwright/testbed';

const TIMEOUT_MS = 60_000;

/**
 * Waits until a version of an object that is newer than the given one satisfies the predicate. `Cluster.waitFor` begins
 * with the current version, so it misses a state that ends before its watch begins. This watch begins at the given version.
 * @param collection path of the object's collection
 */
export async function untilAfter(
  { api }: Pick<Cluster, 'api'>,
  collection: string,
  known: KubeObject,
  predicate: (object: KubeObject) => boolean,
): Promise<KubeObject> {
  const { name, resourceVersion } = known.metadata;
  const query = new URLSearchParams({ fieldSelector: `metadata.name=${name}`, resourceVersion });
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  let last = known;
  try {
    for await (const { type, object } of api.watch(`${collection}?${query}`, signal)) {
      last = object;
      if (type !== 'DELETED' && predicate(object)) return object;
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  throw new Error(
    `${collection}/${name} did not get the expected state; last state: ${JSON.stringify(last)}`,
  );
}
