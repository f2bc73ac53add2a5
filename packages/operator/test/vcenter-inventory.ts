import type { VcenterClient } from '@vmwright/vsphere';

/** A machine in vCenter. */
export interface FoundMachine {
  readonly id: string;
  readonly name: string;
  readonly folder: string | undefined;
  readonly instanceUuid: string | undefined;
  readonly power: string | undefined;
  readonly cpus: number | undefined;
  readonly memoryMb: number | undefined;
}

/** Returns the machines in the folder of this name; without a name, the machines of all VmGroups. */
export async function machinesIn(vcenter: VcenterClient, folder?: string): Promise<readonly FoundMachine[]> {
  const folders = new Map(
    (await vcenter.list('Folder', ['name'])).map(({ ref, properties }) => [ref.value, properties.name]),
  );
  const all = await vcenter.list('VirtualMachine', [
    ...(['name', 'parent', 'config.instanceUuid', 'runtime.powerState'] as const),
    ...(['config.hardware.numCPU', 'config.hardware.memoryMB', 'config.template'] as const),
  ]);
  return all
    .map(({ ref, properties }) => ({
      id: ref.value,
      name: properties.name ?? '',
      folder: folders.get(properties.parent?.value ?? ''),
      instanceUuid: properties['config.instanceUuid'],
      power: properties['runtime.powerState'],
      cpus: properties['config.hardware.numCPU'],
      memoryMb: properties['config.hardware.memoryMB'],
    }))
    .filter((found) => (folder === undefined ? found.name.includes('-replica-') : found.folder === folder));
}

/** Returns the names of the folders in `vm-operator`, one for each VmGroup. */
export async function foldersOf(vcenter: VcenterClient): Promise<readonly string[]> {
  const all = await vcenter.list('Folder', ['name', 'parent']);
  const root = all.find(({ properties }) => properties.name === 'vm-operator');
  return all
    .filter(({ properties }) => root !== undefined && properties.parent?.value === root.ref.value)
    .map(({ properties }) => properties.name ?? '');
}
