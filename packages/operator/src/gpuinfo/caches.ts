import type { Caches } from '@vmwright/runtime';
import { controllerOf } from '../kubevirt/ownership.ts';
import { leanMetadata, pick } from '../lean-metadata.ts';
import { isAccelerator } from './accelerators.ts';
import { isGpuDriver, MODEL_ATTRIBUTES } from './devices.ts';
import { Job, JobSet, Node, NodeClaim, Pod, type PodSpec, ResourceClaim, ResourceSlice } from './kinds.ts';
import { GPUINFO_LABEL, GPUINFO_UID } from './labels.ts';
import { affinityTo, pinnedNode } from './placement.ts';
import { podRequests } from './pod-requests.ts';
import { isMaintenanceAnnotation } from './time-sources/annotation.ts';
import { isMaintenanceCondition } from './time-sources/conditions.ts';

/* Before objects are cached, the functions in this file reduce them to the fields that the operator reads. */

/**
 * Configures the caches of the kinds that the facts come from. Must be called before any other code gets these caches,
 * because options are accepted only at the first `get`.
 */
export function configureCaches(caches: Caches): void {
  caches.get(Node, { transform: leanNode });
  caches.get(Pod, { transform: leanPod, initialList: 'pages' }); // one response with all pods could be too large
  caches.get(Job, { transform: leanJob });
  // Kubernetes before 1.34 does not serve these kinds.
  caches.get(ResourceSlice, { transform: leanSlice, optional: true });
  caches.get(ResourceClaim, { transform: leanClaim, optional: true });
  // Karpenter and JobSet are not installed in every cluster.
  caches.get(JobSet, { transform: leanJobSet, optional: true });
  caches.get(NodeClaim, { transform: leanNodeClaim, optional: true });
}

/** Keeps all labels, because users select nodes by any of them. Drops heartbeats, images and addresses. */
export function leanNode({ metadata, spec, status }: Node): Node {
  const annotations = pick(metadata.annotations, isMaintenanceAnnotation);
  const conditions = status?.conditions
    ?.filter(({ type }) => type === 'Ready' || isMaintenanceCondition(type))
    .map(({ type, status: value, reason, lastTransitionTime }) => ({
      type,
      status: value,
      ...(reason !== undefined && { reason }),
      ...(lastTransitionTime !== undefined && { lastTransitionTime }),
    }));
  const capacity = pick(status?.capacity, isAccelerator);
  const allocatable = pick(status?.allocatable, isAccelerator);
  const systemUUID = status?.nodeInfo?.systemUUID;
  const { providerID, unschedulable, taints } = spec ?? {};
  return {
    metadata: leanMetadata(metadata, {
      ...(metadata.labels && { labels: metadata.labels }),
      ...(annotations && { annotations }),
    }),
    spec: {
      ...(providerID !== undefined && { providerID }),
      ...(unschedulable !== undefined && { unschedulable }),
      ...(taints && {
        taints: taints.map(({ key, value, effect }) => ({ key, ...(value && { value }), effect })),
      }),
    },
    status: {
      ...(conditions && { conditions }),
      ...(capacity && { capacity }),
      ...(allocatable && { allocatable }),
      ...(systemUUID !== undefined && { nodeInfo: { systemUUID } }),
    },
  };
}

/**
 * Keeps the node and the sum of the requests, as if the pod had one container. So `podRequests` returns the same result
 * for the cached pod as for the original. A finished pod is cached without requests.
 */
export function leanPod(pod: Pod): Pod {
  const { metadata, spec, status } = pod;
  const labels = pick(metadata.labels, (key) => key === GPUINFO_LABEL);
  const annotations = labels && pick(metadata.annotations, (key) => key === GPUINFO_UID);
  const owner = labels && controllerOf({ metadata });
  const phase = status?.phase;
  return {
    metadata: leanMetadata(metadata, {
      ...(labels && { labels }),
      ...(annotations && { annotations }),
      ...(owner && { ownerReferences: [owner] }),
    }),
    ...(spec !== undefined && !isFinished(pod) && leanSpec(spec, labels !== undefined)),
    ...(phase !== undefined && { status: { phase } }),
  };
}

/** Whether a pod has ended, so that it uses no resources any more. */
export function isFinished({ status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}

/**
 * Returns the node and the requests of a pod that is bound to a node. For a pending pod of a GPUInfo, returns only the
 * node that its affinity names.
 */
function leanSpec(spec: PodSpec, hasInfo: boolean): Pick<Pod, 'spec'> {
  if (spec.nodeName === undefined) {
    const node = hasInfo ? pinnedNode(spec) : undefined;
    return node === undefined ? {} : { spec: { affinity: affinityTo(node) } };
  }
  const { cpuMillicores, memoryBytes, accelerators } = podRequests(spec);
  const requests = {
    ...(cpuMillicores > 0 && { cpu: `${cpuMillicores}m` }),
    ...(memoryBytes > 0 && { memory: memoryBytes }),
    ...accelerators,
  };
  return {
    spec: {
      nodeName: spec.nodeName,
      ...(Object.keys(requests).length > 0 && { containers: [{ resources: { requests } }] }),
    },
  };
}

/**
 * Keeps the conditions that mean that the Job has ended. For a Job of a GPUInfo, also keeps its controller and whether
 * it has had pods.
 */
export function leanJob({ metadata, spec, status }: Job): Job {
  const labels = pick(spec?.template?.metadata?.labels, (key) => key === GPUINFO_LABEL);
  const { failed, succeeded } = labels === undefined ? {} : (status ?? {});
  const ends =
    status?.conditions?.filter(isEnd).map((each) => ({ type: each.type, status: each.status })) ?? [];
  const owner = labels && controllerOf({ metadata });
  return {
    metadata: leanMetadata(metadata, owner && { ownerReferences: [owner] }),
    ...(labels && { spec: { template: { metadata: { labels } } } }),
    status: {
      ...(failed !== undefined && { failed }),
      ...(succeeded !== undefined && { succeeded }),
      ...(ends.length > 0 && { conditions: ends }),
    },
  };
}

/** Whether a Job has ended, with success or not. */
export function hasEnded({ status }: Job): boolean {
  return status?.conditions?.some(isEnd) ?? false;
}

function isEnd({ type, status }: { readonly type: string; readonly status: string }): boolean {
  return (type === 'Complete' || type === 'Failed') && status === 'True';
}

/** Keeps whether the JobSet has ended, and the GPUInfos that its pod templates refer to. */
export function leanJobSet({ metadata, spec, status }: JobSet): JobSet {
  const replicatedJobs = spec?.replicatedJobs?.flatMap(({ template }) => {
    const labels = pick(template?.spec?.template?.metadata?.labels, (key) => key === GPUINFO_LABEL);
    return labels === undefined ? [] : [{ template: { spec: { template: { metadata: { labels } } } } }];
  });
  const terminalState = status?.terminalState;
  return {
    metadata: leanMetadata(metadata),
    ...(replicatedJobs && replicatedJobs.length > 0 && { spec: { replicatedJobs } }),
    ...(terminalState && { status: { terminalState } }),
  };
}

/**
 * Keeps the devices of a slice that a GPU driver publishes for one node, with the attributes that `deviceGpusOf` reads.
 * Keeps only the metadata of any other slice.
 */
export function leanSlice({ metadata, spec }: ResourceSlice): ResourceSlice {
  if (spec?.nodeName === undefined || !isGpuDriver(spec.driver)) return { metadata: leanMetadata(metadata) };
  const { driver, nodeName, pool, devices = [] } = spec;
  const { name, generation, resourceSliceCount } = pool;
  return {
    metadata: leanMetadata(metadata),
    spec: {
      driver,
      nodeName,
      pool: { name, generation, resourceSliceCount },
      devices: devices.map((device) => {
        const attributes = pick(device.attributes, (key) => MODEL_ATTRIBUTES.has(key.replace(/^.*\//, '')));
        const { taints } = device;
        return { name: device.name, ...(attributes && { attributes }), ...(taints && { taints }) };
      }),
    },
  };
}

/** Keeps which devices of GPU drivers are allocated, and to which pods. */
export function leanClaim({ metadata, status }: ResourceClaim): ResourceClaim {
  const results = status?.allocation?.devices?.results?.filter(({ driver }) => isGpuDriver(driver)) ?? [];
  if (results.length === 0) return { metadata: leanMetadata(metadata) };
  const owner = controllerOf({ metadata });
  return {
    metadata: leanMetadata(metadata, owner === undefined ? {} : { ownerReferences: [owner] }),
    status: {
      allocation: {
        devices: {
          results: results.map(({ driver, pool, device, adminAccess }) => ({
            driver,
            pool,
            device,
            ...(adminAccess === true && { adminAccess }),
          })),
        },
      },
      ...(status?.reservedFor && {
        reservedFor: status.reservedFor.map(({ resource, name }) => ({ resource, name })),
      }),
    },
  };
}

/** Keeps the node and `expireAfter`. */
export function leanNodeClaim({ metadata, spec, status }: NodeClaim): NodeClaim {
  const [expireAfter, nodeName] = [spec?.expireAfter, status?.nodeName];
  return {
    metadata: leanMetadata(metadata),
    ...(expireAfter !== undefined && { spec: { expireAfter } }),
    ...(nodeName !== undefined && { status: { nodeName } }),
  };
}
