import { type Cluster, field, type KubeObject } from '@vmwright/testbed';

/** The status that kstatus computes from an object. */
export type KStatus = 'Terminating' | 'InProgress' | 'Failed' | 'Current';

/**
 * Applies the generic rules of kstatus (sigs.k8s.io/cli-utils/pkg/kstatus) in their order. Flux and kpt apply these
 * rules to custom resources. Argo CD's health check of kinds like ours uses the same fields.
 */
export function kstatusOf(object: KubeObject): KStatus {
  if (object.metadata.deletionTimestamp !== undefined) return 'Terminating';
  const observed = field(object, 'status', 'observedGeneration');
  if (observed !== undefined && observed !== field(object, 'metadata', 'generation')) return 'InProgress';
  const conditions = [field(object, 'status', 'conditions') ?? []].flat();
  const statusOf = (type: string) =>
    field(
      conditions.find((each) => field(each, 'type') === type),
      'status',
    );
  if (statusOf('Reconciling') === 'True') return 'InProgress';
  if (statusOf('Stalled') === 'True') return 'Failed';
  const ready = statusOf('Ready');
  // If an object has none of these fields, kstatus reports Current. This is why our schemas have a default for
  // observedGeneration.
  return ready === undefined || ready === 'True' ? 'Current' : 'InProgress';
}

/** Returns what Flux or Argo CD would have shown for these versions of an object, in order and without repetitions. */
export function kstatusLife(versions: readonly KubeObject[]): readonly KStatus[] {
  const all = versions.map(kstatusOf);
  return all.filter((status, index) => status !== all[index - 1]);
}

/** Every version of one object, from its creation on. */
export interface Life extends Disposable {
  /** Versions in the order of the watch, including the last version before the deletion. */
  readonly versions: readonly KubeObject[];
  /** Resolves when the object is deleted. */
  readonly gone: Promise<void>;
}

/**
 * Starts a watch that records every version of an object. Must be called before the object is created.
 * @param path path of the object, such as `/apis/samplecontroller.k8s.io/v1alpha1/namespaces/default/vms/sample`
 */
export async function recordLife({ api }: Pick<Cluster, 'api'>, path: string): Promise<Life> {
  const cut = path.lastIndexOf('/');
  const collection = path.slice(0, cut);
  const list: unknown = JSON.parse(await api.text(collection));
  const query = new URLSearchParams({
    fieldSelector: `metadata.name=${path.slice(cut + 1)}`,
    resourceVersion: String(field(list, 'metadata', 'resourceVersion')),
  });
  const from = `${collection}?${query}`;
  const stop = new AbortController();
  const versions: KubeObject[] = [];
  const follow = async () => {
    for await (const { type, object } of api.watch(from, stop.signal)) {
      versions.push(object);
      if (type === 'DELETED') return;
    }
    throw new Error(`the watch of ${path} ended before the object was deleted`);
  };
  const gone = follow().catch((error: unknown) => {
    if (!stop.signal.aborted) throw error;
  });
  return { versions, gone, [Symbol.dispose]: () => stop.abort() };
}
