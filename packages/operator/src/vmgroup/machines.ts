import type { Ref } from '@vmwright/vsphere';
import { folderName } from './names.ts';
import type { VmGroup } from './resource.ts';
import type { Marked, Root } from './root.ts';
import type { Site } from './site.ts';
import type { Machine } from './slots.ts';

/** The machines of a group, as vCenter shows them. */
export function machinesOf(site: Site, root: Root, group: VmGroup): readonly Machine[] {
  const folder = root.child(folderName(group));
  return root.machinesOf(group.metadata.uid ?? '').map((marked) => machineFrom(site, folder, marked));
}

function machineFrom(
  site: Site,
  folder: Ref<'Folder'> | undefined,
  { ref, marks, properties }: Marked,
): Machine {
  const { name = ref.value, parent, 'guest.ipAddress': ip, 'runtime.host': host } = properties;
  return {
    slot: marks.slot,
    name,
    id: ref.value,
    power: properties['runtime.powerState'] ?? 'poweredOff',
    isConnected: (properties['runtime.connectionState'] ?? 'connected') === 'connected',
    isInFolder: isIn(folder, parent),
    isTemplate: properties['config.template'] ?? false,
    cpus: properties['config.hardware.numCPU'] ?? 0,
    memoryMb: properties['config.hardware.memoryMB'] ?? 0,
    template: marks.template,
    templateId: marks.templateId,
    canAdd: {
      cpus: properties['config.cpuHotAddEnabled'] ?? false,
      memoryUpToMb: properties['config.memoryHotAddEnabled']
        ? properties['config.hotPlugMemoryLimit'] || Number.POSITIVE_INFINITY
        : 0,
    },
    ...(ip && { ip }),
    ...(host && { host: site.hosts.get(host) }),
  };
}

/** Whether a machine is in its group's folder. True while that folder does not show: people may have renamed it. */
export function isIn(folder: Ref<'Folder'> | undefined, parent: Ref | undefined): boolean {
  return folder === undefined || parent === undefined || parent.value === folder.value;
}
