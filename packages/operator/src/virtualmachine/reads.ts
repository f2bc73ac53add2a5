import { ignoreNotFound, keyOf, type ReconcileContext } from '@vmwright/runtime';
import { DataVolume, PersistentVolumeClaim } from '../kubevirt/kinds.ts';
import { VMDiskImage } from '../vmdiskimage/resource.ts';
import { imageKeyOf } from './image-ref.ts';
import type { VirtualMachine } from './resource.ts';
import { hasSnapshot } from './snapshot-choice.ts';

/* Reads from the API server where a late cache could cost data. */

/**
 * Returns the DataVolume of the root disk as the API server has it, if the caches suggest that it must be replaced: it is
 * missing, or it is not cloned yet and its snapshot is gone. The watch of one kind may be far behind that of another, above all
 * when a replica starts to lead.
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
 * Returns the claim of the root disk as the API server has it, if the DataVolume does not exist and the cache has no claim. A
 * disk is replaced only if its claim is gone, too.
 * @param volume DataVolume that the API server has
 */
export async function readDoubtfulClaim(
  { metadata: { namespace }, status }: VirtualMachine,
  volume: DataVolume | undefined,
  { client, cache }: Pick<ReconcileContext<VirtualMachine>, 'client' | 'cache'>,
): Promise<PersistentVolumeClaim | undefined> {
  if (status?.dataVolume === undefined || volume !== undefined) return undefined;
  const ref = { namespace, name: status.dataVolume };
  const cached = cache(DataVolume).get(keyOf(ref)) ?? cache(PersistentVolumeClaim).get(keyOf(ref));
  return cached === undefined ? ignoreNotFound(client.get(PersistentVolumeClaim, ref)) : undefined;
}
