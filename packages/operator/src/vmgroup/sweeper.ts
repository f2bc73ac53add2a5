import type { Logger, Manager } from '@vmwright/runtime';
import { type CollectorOptions, collectGarbage } from '../gc/collector.ts';
import { VmGroup } from './resource.ts';
import type { Sites } from './sites.ts';
import { type Stray, vcenterResources } from './strays.ts';

export interface VmGroupSweeperOptions extends Omit<CollectorOptions<Stray>, 'name' | 'kind' | 'external'> {
  readonly sites: Sites;
  readonly cluster: string;
  readonly log: Logger;
}

/** Deletes machines and folders of vCenter that were created after their VmGroup was deleted, and reports others. */
export function sweepVmGroups(
  manager: Manager,
  { sites, cluster, log, ...options }: VmGroupSweeperOptions,
): void {
  const external = vcenterResources(sites, cluster, log);
  collectGarbage(manager, { ...options, name: 'vmgroup', kind: VmGroup, external });
}
