import type { Ref } from '@vmwright/vsphere';
import type { VCenter } from '../vcenter/vcenter.ts';
import type { OwnedMachine } from '../vcenter/watched-folder.ts';
import { folderName } from './identity.ts';
import type { Location } from './placement.ts';
import type { VmGroup } from './resource.ts';
import type { Machine } from './slots.ts';

/** Returns the machines of a group, as the inventory shows them. */
export function machinesOf(group: VmGroup, { vcenter, watched }: Location): readonly Machine[] {
  const folder = watched.child(folderName(group));
  return watched.machinesOf(group.metadata.uid ?? '').map((machine) => machineFrom(machine, folder, vcenter));
}

function machineFrom(
  { ref, ownership, properties }: OwnedMachine,
  folder: Ref<'Folder'> | undefined,
  { hosts }: VCenter,
): Machine {
  const { name = ref.value, parent, 'guest.ipAddress': ip, 'runtime.host': host } = properties;
  return {
    slot: ownership.slot,
    name,
    id: ref.value,
    power: properties['runtime.powerState'] ?? 'poweredOff',
    isConnected: (properties['runtime.connectionState'] ?? 'connected') === 'connected',
    isInFolder: isInFolder(parent, folder),
    isTemplate: properties['config.template'] ?? false,
    cpus: properties['config.hardware.numCPU'] ?? 0,
    memoryMb: properties['config.hardware.memoryMB'] ?? 0,
    template: ownership.template,
    templateId: ownership.templateId,
    hotAdd: {
      cpus: properties['config.cpuHotAddEnabled'] ?? false,
      maxMemoryMb: properties['config.memoryHotAddEnabled']
        ? properties['config.hotPlugMemoryLimit'] || Number.POSITIVE_INFINITY
        : 0,
    },
    ...(ip && { ip }),
    ...(host && { host: hosts.get(host) }),
  };
}

/**
 * Whether a machine is in its group's folder. Also true while the inventory lacks the machine's parent, or the group's
 * folder, which people may have renamed.
 */
export function isInFolder(parent: Ref | undefined, folder: Ref<'Folder'> | undefined): boolean {
  return folder === undefined || parent === undefined || parent.value === folder.value;
}

export function machineRef(value: string): Ref<'VirtualMachine'> {
  return { type: 'VirtualMachine', value };
}
