import { field, type KubeObject } from '../../kubernetes/api.ts';
import type { Cluster } from '../../kubernetes/cluster.ts';
import { startWorker } from './worker.ts';

/**
 * Stand-in for the CSI resizer, which grows the volume of a bound claim to the requested size. The API server itself
 * rejects an expansion that the StorageClass of the claim does not allow.
 */
export function startResizer({ api }: Cluster): Disposable {
  return startWorker(api, '/api/v1/persistentvolumeclaims', async (claim) => {
    const size = requestedExpansion(claim);
    if (size === undefined) return;
    const { name, namespace, uid } = claim.metadata;
    const volume = field(claim, 'spec', 'volumeName');
    const setStatus = (status: object) =>
      api.merge(`/api/v1/namespaces/${namespace}/persistentvolumeclaims/${name}/status`, {
        metadata: { uid },
        status,
      });
    const lastTransitionTime = new Date().toISOString().replace(/\.\d+/, '');
    await setStatus({ conditions: [{ type: 'Resizing', status: 'True', lastTransitionTime }] });
    await api.merge(`/api/v1/persistentvolumes/${volume}`, { spec: { capacity: { storage: size } } });
    await setStatus({ capacity: { storage: size }, conditions: [] });
  });
}

/**
 * Returns the requested size of a bound claim if the size differs from the capacity, and undefined otherwise. The API
 * server rejects requests below the capacity, so a different size is always larger.
 */
function requestedExpansion(claim: KubeObject): string | undefined {
  const requested = field(claim, 'spec', 'resources', 'requests', 'storage');
  const capacity = field(claim, 'status', 'capacity', 'storage');
  if (claim.metadata.deletionTimestamp !== undefined || capacity === undefined) return undefined;
  return typeof requested === 'string' && requested !== capacity ? requested : undefined;
}
