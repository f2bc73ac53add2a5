import type { Cluster, KubeObject } from '@vmwright/testbed';

const TIMEOUT_MS = 60_000;

/**
 * Waits until a version of the object newer than `known` satisfies the predicate. The watch begins at `known`, so it
 * also finds a state that has already ended. `Cluster.waitFor` begins with the current version.
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
