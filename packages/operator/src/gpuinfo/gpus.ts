import { parseQuantity } from '@vmwright/runtime';
import type { HostFacts, MachineFacts } from '../vcenter/compute-facts.ts';
import { acceleratorRank, modelsOf } from './accelerators.ts';
import type { GpuUse, NodeGpus } from './candidate.ts';
import type { DeviceGpus } from './devices.ts';
import type { Node } from './kinds.ts';

/** GPUs of a node, and where they are announced. */
export interface FoundGpus extends NodeGpus {
  readonly origin: 'resource' | 'devices' | 'machine' | 'host';
  /** Number of usable GPUs of the pool. */
  readonly total: number;
  /** Extended resource, if the origin is `resource`. */
  readonly resource?: string;
  /** DRA device class, if the origin is `devices`. */
  readonly deviceClass?: string;
}

/**
 * Returns the GPUs of a node. Uses only the first source that reports GPUs, so that a GPU in several sources counts
 * once. The order of the sources: an extended resource, a DRA driver, the devices attached to the VM, the ESXi host. If
 * several nodes use the GPUs of their host, they share them.
 */
export function gpusOf(
  node: Node,
  devices: DeviceGpus | undefined,
  machine: MachineFacts | undefined,
  host: HostFacts | undefined,
): FoundGpus | undefined {
  const { name, labels = {} } = node.metadata;
  const pool = `node/${name}`;
  const announced = announcedBy(node);
  if (announced !== undefined) {
    const { resource, total } = announced;
    return { origin: 'resource', pool, total, resource, models: modelsOf(resource, labels) };
  }
  if (devices !== undefined) {
    const { deviceClass, models, total } = devices;
    return { origin: 'devices', pool, total, deviceClass, models };
  }
  if (machine !== undefined && machine.gpus.length > 0)
    return {
      origin: 'machine',
      pool: `machine/${machine.id}`, // two Nodes of one machine share the pool, for example after a node was renamed
      total: machine.gpus.length,
      models: modelsIn(machine.gpus),
    };
  if (host !== undefined && host.gpus.length > 0)
    return {
      origin: 'host',
      pool: `host/${host.id}`,
      total: host.gpus.length,
      models: modelsIn(host.gpus),
    };
  return undefined;
}

/**
 * Returns the extended resource that announces the node's accelerators, with the number of healthy devices. If all
 * devices are unhealthy, the device plugin still announces the capacity: the node has GPUs, but none of them can be
 * used.
 */
function announcedBy({ status }: Node): { resource: string; total: number } | undefined {
  const { capacity = {}, allocatable = {} } = status ?? {};
  const count = (text: string | number | undefined) => Math.floor(parseQuantity(text ?? 0) ?? 0);
  const [first] = Object.keys({ ...capacity, ...allocatable })
    .flatMap((resource) => {
      const rank = acceleratorRank(resource);
      const total = count(allocatable[resource]);
      const exists = total > 0 || count(capacity[resource]) > 0;
      return rank !== undefined && exists ? [{ resource, total, rank }] : [];
    })
    .toSorted(
      (a, b) =>
        Number(b.total > 0) - Number(a.total > 0) || a.rank - b.rank || (a.resource < b.resource ? -1 : 1),
    );
  return first;
}

function modelsIn(gpus: readonly { readonly model: string }[]): readonly string[] {
  return [...new Set(gpus.map(({ model }) => model).filter((model) => model !== ''))].toSorted();
}

/**
 * Returns how many GPUs of a host are in use by powered-on VMs. The holder is undefined, because vCenter does not know
 * which GPUInfo a VM belongs to.
 */
export function hostUses(host: HostFacts | undefined): readonly GpuUse[] {
  const gpus = host?.gpus.filter(({ isInUse }) => isInUse).length ?? 0;
  return gpus === 0 ? [] : [{ holder: undefined, gpus }];
}
