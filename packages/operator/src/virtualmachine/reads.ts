import { ignoreNotFound, keyOf, type ReconcileContext } from '@vmwright/runtime';
import { DataVolume, PersistentVolumeClaim } from '../kubevirt/kinds.ts';
import { VMDiskImage } from '../vmdiskimage/resource.ts';
import { imageKeyOf } from './image-ref.ts';
import type { VirtualMachine } from './resource.ts';
import { hasSnapshot } from './snapshot-choice.ts';

/* Reads from the API server for cases in which an outdated cache could lead to a loss of data. */

/**
 * Returns the DataVolume of the root disk as the API server has it, if the caches suggest that it must be replaced: it
 * is missing, or it is not cloned yet and its snapshot is gone. The caches are no proof, because the watch of one kind
 * may be far behind the watch of another, especially on a new leader.
 */
export async function readDoubtfulVolume(
  vm: VirtualMachine,
  { client, cache }: Pick<ReconcileContext<VirtualMachine>, 'client' | 'cache'>,
): Promise<DataVolume | undefined> {
  const { dataVolume, snapshot } = vm.status ?? {};
  if (dataVolume === undefined) return undefined;
  const ref = { namespace: vm.metadata.namespace, name: dataVolume };
  const cached = cache(DataVolume).get(keyOf(ref));
  if (cached !== undefined) {
    const image = cache(VMDiskImage).get(imageKeyOf(vm));
    const isSourceGone =
      image?.status?.phase === 'Ready' && snapshot !== undefined && !hasSnapshot(image, snapshot);
    if (cached.status?.phase === 'Succeeded' || !isSourceGone) return undefined;
  }
  return ignoreNotFound(client.get(DataVolume, ref));
}

/**
 * Reads the claim of the root disk from the API server. Returns undefined without a request if the cache contains the
 * claim, or while the DataVolume is being cloned. The operator replaces a disk, or asks the user to delete its
 * DataVolume, only if the claim is gone.
 * @param volume result of `readDoubtfulVolume`
 */
export async function readDoubtfulClaim(
  { metadata: { namespace }, status }: VirtualMachine,
  volume: DataVolume | undefined,
  { client, cache }: Pick<ReconcileContext<VirtualMachine>, 'client' | 'cache'>,
): Promise<PersistentVolumeClaim | undefined> {
  if (status?.dataVolume === undefined) return undefined;
  const ref = { namespace, name: status.dataVolume };
  const known = volume ?? cache(DataVolume).get(keyOf(ref));
  const isCloning = known !== undefined && known.status?.phase !== 'Succeeded';
  if (isCloning || cache(PersistentVolumeClaim).get(keyOf(ref)) !== undefined) return undefined;
  return ignoreNotFound(client.get(PersistentVolumeClaim, ref));
}
