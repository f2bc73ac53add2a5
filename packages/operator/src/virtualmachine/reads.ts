import { ignoreNotFound, keyOf, type ReconcileContext } from '@vmwright/runtime';
import { DataVolume, PersistentVolumeClaim } from '../kubevirt/kinds.ts';
import { VMDiskImage } from '../vmdiskimage/resource.ts';
import { imageKeyOf } from './image-ref.ts';
import type { VirtualMachine } from './resource.ts';
import { hasSnapshot } from './snapshot-choice.ts';

/* Reads from the API server for cases in which an outdated cache could lead to a loss of data. */

/**
 * Reads the DataVolume of the root disk from the API server if the caches suggest that the disk must be replaced. This
 * is the case if the caches lack the DataVolume, or if the snapshot of an unfinished clone is gone. The caches alone
 * are no proof: the watch of one kind may be far behind the watch of another, especially on a new leader.
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
 * Reads the claim of the root disk from the API server. If the claim is gone, the operator replaces the disk, or asks
 * the user to delete its DataVolume. Returns undefined without a request if the claim is cached or the DataVolume is
 * being cloned.
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
