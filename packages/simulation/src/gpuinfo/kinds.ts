import { GPUInfo } from '@vmwright/operator';
import type { Kind } from '@vmwright/runtime';
import type { ApiServer } from '../apiserver/api-server.ts';
import { declaredResource } from '../apiserver/resource.ts';
import { kindOf, OPEN } from '../scenario/open-kind.ts';

/*
 * Kinds that the operator uses besides GPUInfo. They are not imported from the operator, so that the simulation detects
 * a wrong API path in the operator. The model serves them without a status subresource, because the operator does not
 * write their statuses.
 */

const core = { group: '', version: 'v1' } as const;
const devices = { group: 'resource.k8s.io', version: 'v1' } as const;

export const Node = kindOf({ ...core, kind: 'Node', plural: 'nodes' }, 'Cluster');
export const Pod = kindOf({ ...core, kind: 'Pod', plural: 'pods' });
export const Job = kindOf({ group: 'batch', version: 'v1', kind: 'Job', plural: 'jobs' });
export const ConfigMap = kindOf({ ...core, kind: 'ConfigMap', plural: 'configmaps' });

/** Kinds without objects in this scenario. */
const UNUSED: readonly Kind[] = [
  kindOf({ ...devices, kind: 'ResourceSlice', plural: 'resourceslices' }, 'Cluster'),
  kindOf({ ...devices, kind: 'ResourceClaim', plural: 'resourceclaims' }),
  kindOf({ group: 'jobset.x-k8s.io', version: 'v1alpha2', kind: 'JobSet', plural: 'jobsets' }),
  kindOf({ group: 'karpenter.sh', version: 'v1', kind: 'NodeClaim', plural: 'nodeclaims' }, 'Cluster'),
];

/**
 * The model has no CEL rules for GPUInfos, because the users in this scenario never violate them.
 * `packages/operator/test` tests these rules on a real API server.
 */
const SERVED_GPUINFO = declaredResource(GPUInfo, () => []);

export function serveGpuKinds(server: ApiServer): void {
  for (const kind of [Node, Pod, Job, ...UNUSED])
    server.serveResource({ kind, schema: OPEN, custom: false, status: false });
  server.serveResource(SERVED_GPUINFO);
}

/** Name of the extended resource for GPUs. */
export const GPU = 'nvidia.com/gpu';
/** Node label that contains the model of the GPUs. */
export const MODEL = 'nvidia.com/gpu.product';
export const ZONE = 'zone';
/**
 * Pod label that contains the name of the GPUInfo, and pod annotation that contains the GPUInfo's UID. The webhook adds
 * the annotation.
 */
export const INFO_LABEL = 'vmwright.dev/gpuinfo';
export const INFO_UID = 'vmwright.dev/gpuinfo-uid';
export const MAINTENANCE_START = 'vmwright.dev/maintenance-start';
export const MAINTENANCE_END = 'vmwright.dev/maintenance-end';
