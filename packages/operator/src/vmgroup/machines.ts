import type { Machine } from './plan.ts';
import type { VmGroup } from './resource.ts';
import type { Marked, Root } from './root.ts';
import type { Site } from './site.ts';

/** The machines of a group, as vCenter shows them. */
export function machinesOf(site: Site, root: Root, { metadata: { uid = '' } }: VmGroup): readonly Machine[] {
  return root.machinesOf(uid).map((marked) => machineFrom(site, marked));
}

function machineFrom(site: Site, { ref, marks, properties }: Marked): Machine {
  const { 'guest.ipAddress': ip, 'runtime.host': host } = properties;
  return {
    slot: marks.slot,
    id: ref.value,
    power: properties['runtime.powerState'] ?? 'poweredOff',
    isConnected: (properties['runtime.connectionState'] ?? 'connected') === 'connected',
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
    ...(host && { host: site.hosts.of(host) }),
  };
}
