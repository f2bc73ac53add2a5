import { type Client, type Kind, NotFoundError } from '@vmwright/runtime';
import { GPUInfo } from './gpuinfo/resource.ts';
import { DataVolume, KubevirtInstance, KubevirtMachine, VolumeSnapshot } from './kubevirt/kinds.ts';
import type { ControllerName } from './settings/controllers.ts';
import { VirtualMachine } from './virtualmachine/resource.ts';
import { VM } from './vm/resource.ts';
import { VMDiskImage } from './vmdiskimage/resource.ts';
import { VmGroup } from './vmgroup/resource.ts';

/** Kinds whose CustomResourceDefinitions must be installed for a controller to run. */
export const REQUIRED_KINDS: { readonly [C in ControllerName]: readonly Kind[] } = {
  vm: [VM],
  vmgroup: [VmGroup],
  kubevirt: [
    ...[VirtualMachine, VMDiskImage, KubevirtMachine, KubevirtInstance],
    ...[DataVolume, VolumeSnapshot],
  ],
  gpuinfo: [GPUInfo],
};

/** Returns the kinds that the API server does not serve, because their CustomResourceDefinition is not installed. */
export async function unservedKinds(
  client: Pick<Client, 'raw'>,
  kinds: readonly Kind[],
  signal?: AbortSignal,
): Promise<readonly Kind[]> {
  const unserved: Kind[] = [];
  for (const [path, each] of Map.groupBy(kinds, ({ group, version }) => `/apis/${group}/${version}`)) {
    const served = await resourcesAt(client, path, signal);
    unserved.push(...each.filter(({ plural }) => !served.has(plural)));
  }
  return unserved;
}

/** Returns the resources of a group version according to discovery, which every authenticated user may read. */
async function resourcesAt(
  client: Pick<Client, 'raw'>,
  path: string,
  signal: AbortSignal | undefined,
): Promise<ReadonlySet<string>> {
  try {
    const list: unknown = JSON.parse(await client.raw(path, { signal }));
    const resources =
      typeof list === 'object' && list !== null && 'resources' in list && Array.isArray(list.resources)
        ? list.resources
        : [];
    return new Set(resources.map((resource: { readonly name?: unknown }) => String(resource.name)));
  } catch (error) {
    if (error instanceof NotFoundError) return new Set();
    throw error;
  }
}
