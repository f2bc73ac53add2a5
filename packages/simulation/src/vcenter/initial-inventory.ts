import type { Entity } from './entity.ts';
import type { Folders } from './folders.ts';
import type { Registry } from './registry.ts';
import { type Ref, val } from './xml.ts';

/** The initial inventory of a vCenter: one datacenter with one cluster of two hosts. */
export interface Place {
  readonly root: Entity;
  readonly vmFolder: Entity;
  readonly hosts: readonly [string, ...string[]];
}

const DATACENTER = 'DC0';
const CLUSTER = 'DC0_C0';

export function buildInventory(registry: Registry, folders: Folders): Place {
  const add = (type: string, value: string, name: string, parent?: Entity) => {
    const entity = registry.add({ type, value }, name, parent);
    registry.set(entity, 'name', val.string(name));
    if (parent !== undefined) registry.set(entity, 'parent', val.ref(parent.ref));
    return entity;
  };
  const root = add('Folder', 'group-d1', 'Datacenters');
  const datacenter = add('Datacenter', 'datacenter-2', DATACENTER, root);
  const addFolder = (name: string, path: string) => {
    const folder = folders.create(datacenter, name, 'itself');
    registry.set(datacenter, path, val.ref(folder.ref));
    return folder;
  };
  const vmFolder = addFolder('vm', 'vmFolder');
  const hostFolder = addFolder('host', 'hostFolder');
  const datastoreFolder = addFolder('datastore', 'datastoreFolder');
  addFolder('network', 'networkFolder');
  const cluster = add('ClusterComputeResource', 'domain-c3', CLUSTER, hostFolder);
  const pool = add('ResourcePool', 'resgroup-4', 'Resources', cluster);
  registry.set(cluster, 'resourcePool', val.ref(pool.ref));
  for (const host of HOSTS) add('HostSystem', host, `esx-${host}`, cluster);
  add('Datastore', 'datastore-5', 'LocalDS_0', datastoreFolder);
  return { root, vmFolder, hosts: HOSTS };
}

const HOSTS = ['host-6', 'host-7'] as const;

/** References of vCenter's service objects. */
export const SERVICES = {
  service: { type: 'ServiceInstance', value: 'ServiceInstance' },
  sessions: { type: 'SessionManager', value: 'SessionManager' },
  attributes: { type: 'CustomFieldsManager', value: 'CustomFieldsManager' },
  collector: { type: 'PropertyCollector', value: 'propertyCollector' },
  views: { type: 'ViewManager', value: 'ViewManager' },
  tasks: { type: 'TaskManager', value: 'TaskManager' },
  search: { type: 'SearchIndex', value: 'SearchIndex' },
} as const satisfies Record<string, Ref>;
