import { type Client, keyOf, type ReconcileContext } from '@vmwright/runtime';
import { DataVolume } from '../kubevirt/kinds.ts';
import { VMDiskImage } from '../vmdiskimage/resource.ts';
import { ignoreNotFound } from './errors.ts';
import { imageKeyOf } from './image-ref.ts';
import { VirtualMachine } from './resource.ts';
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

/** Whether no newer version of the VirtualMachine is stored than the given one. */
export async function isNewest({ metadata }: VirtualMachine, client: Pick<Client, 'get'>): Promise<boolean> {
  const stored = await ignoreNotFound(client.get(VirtualMachine, metadata));
  return stored?.metadata.resourceVersion === metadata.resourceVersion;
}
