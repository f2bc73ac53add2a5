import type { ComputeFacts, HostFacts, MachineFacts } from '../vcenter/compute-facts.ts';
import { machineBlocker, nodeBlocker } from './blocker.ts';
import type { Blocker, Candidate, GpuPool, GpuUse } from './candidate.ts';
import type { DeviceGpus } from './devices.ts';
import { type FoundGpus, gpusOf } from './gpus.ts';
import type { Node, NodeClaim } from './kinds.ts';
import { machineOf } from './machine-of.ts';
import type { NodeRequests } from './pod-uses.ts';
import { annotatedMaintenance } from './time-sources/annotation.ts';
import type { Calendar } from './time-sources/calendar.ts';
import { conditionMaintenance } from './time-sources/conditions.ts';
import { gkeMaintenance } from './time-sources/gke-label.ts';
import { karpenterMaintenance } from './time-sources/karpenter.ts';
import { merged, NOTHING_PLANNED, type Planned } from './time-sources/planned.ts';

/** Everything that is known about a node. */
export interface NodeSources {
  readonly node: Node;
  readonly compute: ComputeFacts;
  /** Name of the last known VM of the node; undefined if the node had none. */
  readonly machineBefore?: string | undefined;
  readonly devices: DeviceGpus | undefined;
  /** Karpenter's NodeClaims of the node. Two exist for a short time while Karpenter replaces one. */
  readonly nodeClaims: readonly NodeClaim[];
  /**
   * Undefined if no calendar is configured. `unread` if a calendar is configured, but its file has not been valid yet.
   */
  readonly calendar: Calendar | 'unread' | undefined;
  /** Whether maintenance is simulated, so that all other sources of maintenance are ignored. @default false */
  readonly isSimulated?: boolean;
  readonly requests: NodeRequests;
  /** Returns the GPUs of the node that pods use, by holder (UID of a GPUInfo). */
  readonly usesOf: (gpus: FoundGpus) => readonly GpuUse[];
}

/** A candidate, its GPU pool, warnings and links to vSphere objects. */
export interface NodeResult {
  readonly candidate: Candidate;
  /** Pool of the node's own GPUs, or of the GPUs of its host. */
  readonly pool: GpuPool | undefined;
  readonly warnings: readonly string[];
  readonly machineId: string | undefined;
  readonly machineName: string | undefined;
  readonly hostId: string | undefined;
  /** Whether a VM that appears later in vCenter can change the result. */
  readonly isProvisional: boolean;
}

/** Merges what the sources know about a node. */
export function candidateOf(sources: NodeSources, now: number): NodeResult {
  const { node, compute, machineBefore, devices } = sources;
  const { name, labels = {} } = node.metadata;
  const { machine, blocker: unknown, isProvisional } = machineOf(node, compute, machineBefore);
  const host = machine?.hostId === undefined ? undefined : compute.host(machine.hostId);
  const gpus = gpusOf(node, devices, machine, host);
  const hostName = host?.name ?? name;
  const planned = plannedFor(sources, host, now);
  const { resource, deviceClass } = gpus ?? {};
  return {
    candidate: {
      name,
      host: hostName,
      labels,
      blocker:
        nodeBlocker(node, resource) ??
        unknown ??
        (machine && machineBlocker(machine, host)) ??
        unknownMaintenance(sources, planned),
      gpus: gpus && { pool: gpus.pool, models: gpus.models },
      ...usageOf(machine, sources.requests),
      maintenance: planned.maintenance,
      ...(resource !== undefined && { resource }),
      ...(deviceClass !== undefined && { deviceClass }),
    },
    pool: gpus && { id: gpus.pool, total: gpus.total, uses: sources.usesOf(gpus) },
    warnings: [...planned.unknown, ...planned.warnings],
    machineId: machine?.id,
    machineName: machine?.name,
    hostId: machine?.hostId,
    isProvisional,
  };
}

/** Returns the CPU and memory that a node uses: the usage of its VM, else the requests of its pods. */
export function usageOf(
  machine: MachineFacts | undefined,
  { cpuMillicores, memoryBytes }: NodeRequests,
): Pick<Candidate, 'cpuUsage' | 'memoryUsage'> {
  return {
    cpuUsage: machine?.cpuDemandMhz ?? cpuMillicores,
    memoryUsage: machine?.memoryUsageMb ?? Math.round(memoryBytes / 2 ** 20),
  };
}

function plannedFor(
  { node, nodeClaims, calendar, isSimulated = false }: NodeSources,
  host: HostFacts | undefined,
  now: number,
): Planned {
  if (isSimulated) return NOTHING_PLANNED;
  const { name, labels = {} } = node.metadata;
  const announced = merged([annotatedMaintenance(node), gkeMaintenance(node)], now);
  const windows =
    calendar === undefined || calendar === 'unread'
      ? []
      : calendar.maintenanceOf({ name, host: host?.name ?? name, labels }, now);
  return merged(
    [
      announced,
      conditionMaintenance(node, announced.maintenance),
      ...nodeClaims.map(karpenterMaintenance),
      { ...NOTHING_PLANNED, maintenance: windows },
      ...(host === undefined ? [] : [plannedOn(host)]),
    ],
    now,
  );
}

/** Returns the maintenance of a host. Each warning about the host means that some of its maintenance may be unknown. */
function plannedOn({ maintenance, warnings: unknown }: HostFacts): Planned {
  return { maintenance, unknown, warnings: [] };
}

/**
 * Returns the blocker of a node that may have maintenance with an unknown start; undefined if all maintenance is known.
 */
function unknownMaintenance(
  { calendar, isSimulated = false }: NodeSources,
  { unknown: [message] }: Planned,
): Blocker | undefined {
  if (message !== undefined) return { reason: 'FactsUnknown', message };
  if (calendar !== 'unread' || isSimulated) return undefined;
  return { reason: 'FactsUnknown', message: 'the calendar of planned maintenance has not been read yet' };
}
