import type { Entity } from './entity.ts';
import type { Folders } from './folders.ts';
import type { Registry } from './registry.ts';
import { type Ref, val } from './xml.ts';

/** What every vCenter has from the start: one datacenter, with one cluster of a few hosts. */
export interface Place {
  readonly root: Entity;
  readonly vmFolder: Entity;
  readonly hosts: readonly [string, ...string[]];
}

const DATACENTER = 'DC0';
const CLUSTER = 'DC0_C0';

export function build(registry: Registry, folders: Folders): Place {
  const put = (type: string, value: string, name: string, parent?: Entity) => {
    const entity = registry.add({ type, value }, name, parent);
    registry.set(entity, 'name', val.string(name));
    if (parent !== undefined) registry.set(entity, 'parent', val.ref(parent.ref));
    return entity;
  };
  const root = put('Folder', 'group-d1', 'Datacenters');
  const datacenter = put('Datacenter', 'datacenter-2', DATACENTER, root);
  const inside = (name: string, path: string) => {
    const folder = folders.make(datacenter, name, 'itself');
    registry.set(datacenter, path, val.ref(folder.ref));
    return folder;
  };
  const vmFolder = inside('vm', 'vmFolder');
  const hostFolder = inside('host', 'hostFolder');
  const datastoreFolder = inside('datastore', 'datastoreFolder');
  inside('network', 'networkFolder');
  const cluster = put('ClusterComputeResource', 'domain-c3', CLUSTER, hostFolder);
  const pool = put('ResourcePool', 'resgroup-4', 'Resources', cluster);
  registry.set(cluster, 'resourcePool', val.ref(pool.ref));
  for (const host of HOSTS) put('HostSystem', host, `esx-${host}`, cluster);
  put('Datastore', 'datastore-5', 'LocalDS_0', datastoreFolder);
  return { root, vmFolder, hosts: HOSTS };
}

const HOSTS = ['host-6', 'host-7'] as const;

/** The objects that stand for vCenter's services. */
export const SERVICES = {
  service: { type: 'ServiceInstance', value: 'ServiceInstance' },
  sessions: { type: 'SessionManager', value: 'SessionManager' },
  attributes: { type: 'CustomFieldsManager', value: 'CustomFieldsManager' },
  collector: { type: 'PropertyCollector', value: 'propertyCollector' },
  views: { type: 'ViewManager', value: 'ViewManager' },
  tasks: { type: 'TaskManager', value: 'TaskManager' },
  search: { type: 'SearchIndex', value: 'SearchIndex' },
} as const satisfies Record<string, Ref>;
