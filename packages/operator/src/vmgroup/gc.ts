import { collectGarbage, type Logger, type Manager } from '@vmwright/runtime';
import { auditCollected, GARBAGE, type GarbageOptions } from '../garbage.ts';
import type { VCenterPool } from '../vcenter/vcenter-pool.ts';
import { VmGroup } from './resource.ts';
import { vcenterResources } from './vcenter-resources.ts';

export interface VmGroupGarbageOptions extends GarbageOptions {
  readonly vcenters: VCenterPool;
  /** Id of this cluster in the ownership labels. */
  readonly cluster: string;
  readonly log: Logger;
}

/**
 * Deletes machines and folders in vCenter that were created after their VmGroup was deleted, and reports other machines
 * and folders without a VmGroup.
 */
export function collectVmGroupGarbage(
  manager: Manager,
  { vcenters, cluster, log, ...options }: VmGroupGarbageOptions,
): void {
  const external = vcenterResources(vcenters, { cluster, namespaces: options.namespaces }, log);
  collectGarbage(manager, {
    ...options,
    ...GARBAGE,
    name: 'vmgroup-gc',
    metricPrefix: 'vmwright_vmgroup',
    kind: VmGroup,
    external,
    onChange: auditCollected(VmGroup, external),
  });
}
