import {
  Client,
  type Draft,
  type Kind,
  type KubeObject,
  kubeconfigAccess,
  nodeWorld,
} from '@vmwright/runtime';
import type { Cluster } from '@vmwright/testbed';
import { crd, Sample } from './sample.ts';

export const NAMESPACE = 'default';

export async function connect({ kubeconfig }: Cluster): Promise<Client> {
  const access = await kubeconfigAccess({ world: nodeWorld, path: kubeconfig });
  return new Client({ world: nodeWorld, access, fieldManager: 'bench' });
}

/** Creates `count` objects, sixteen at a time. */
export async function createAll<T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  count: number,
  object: (i: number) => Draft<T>,
): Promise<void> {
  let next = 0;
  const create = async () => {
    while (next < count) {
      next += 1;
      await client.create(kind, object(next - 1));
    }
  };
  await Promise.all(Array.from({ length: 16 }, create));
}

/** Waits until the predicate holds for `count` objects. */
export async function untilAll<T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  count: number,
  predicate: (object: T) => boolean,
): Promise<void> {
  const done = new Set<string>();
  for await (const event of client.watch(kind, { namespace: NAMESPACE })) {
    if (!('object' in event)) continue;
    if (predicate(event.object)) done.add(event.object.metadata.name);
    else done.delete(event.object.metadata.name);
    if (done.size === count) return;
  }
}

export async function declareSample(cluster: Cluster): Promise<void> {
  await cluster.apply(JSON.stringify(crd));
  await cluster.kubectl(['wait', '--for=condition=Established', `crd/${crd.metadata.name}`]);
}

export async function createSamples(client: Client, count: number, namespace = NAMESPACE): Promise<void> {
  await createAll(client, Sample, count, (i) => sample(`s-${i}`, namespace));
}

export function sample(name: string, namespace = NAMESPACE): Draft<Sample> {
  return { metadata: { namespace, name }, spec: { text: 'x' } };
}
