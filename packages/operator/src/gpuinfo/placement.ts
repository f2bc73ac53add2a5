import { schema } from '@vmwright/runtime';
import type { Candidate } from './candidate.ts';
import type { PodSpec } from './kinds.ts';
import { GPUINFO_LABEL } from './labels.ts';

const { array, embedded, integer, map, object, optional, string } = schema;

/** Label with which Kueue limits the run time of a Job or pod, in seconds. */
const KUEUE_MAX_TIME = 'kueue.x-k8s.io/max-exec-time-seconds';

/** Name of the claim in the pod, and of the request in the claim. */
const CLAIM = 'gpu';

/** Largest `activeDeadlineSeconds` that the API server accepts for a pod. */
export const MOST_SECONDS = 2 ** 31 - 1;

const MAX_LABEL_LENGTH = 63;

const requirement = object({
  key: string({ description: 'Field of the node: metadata.name.' }),
  operator: string({ description: 'Operator: In.' }),
  values: array(string(), { description: 'Name of the reserved node.' }),
});

const affinity = object(
  {
    nodeAffinity: object(
      {
        requiredDuringSchedulingIgnoredDuringExecution: object(
          {
            nodeSelectorTerms: array(
              object({ matchFields: array(requirement, { description: 'Fields of the node.' }) }),
              { description: 'Nodes that the pod can run on.' },
            ),
          },
          { description: 'Constraint that the scheduler enforces.' },
        ),
      },
      { description: 'Nodes that the pod can run on.' },
    ),
  },
  { description: 'For spec.affinity of the pod template: the reserved node.' },
);

const toleration = object({
  key: string({ description: 'Key of the taint: the extended resource of the GPUs.' }),
  operator: string({ description: 'Operator: Exists.' }),
  effect: string({ description: 'Effect of the taint: NoSchedule.' }),
});

const resources = object(
  {
    limits: optional(
      map(string(), { description: 'Extended resource of the GPUs, such as nvidia.com/gpu.' }),
    ),
    claims: optional(
      array(object({ name: string({ description: 'Name in resourceClaims.' }) }), {
        description: 'Claims of the container, if DRA manages the GPUs.',
      }),
    ),
  },
  {
    description:
      'Value for the field resources of one container. Not set if the node announces no GPUs to Kubernetes.',
  },
);

const resourceClaim = object({
  name: string({ description: 'Name for the claims of containers.' }),
  resourceClaimTemplateName: string({ description: 'Name of the ResourceClaimTemplate.' }),
});

/** Schema of `status.placement`. */
export const placement = object(
  {
    labels: optional(
      map(string(), {
        description: `Labels for the Job and for its pod template. ${GPUINFO_LABEL} lets the operator add the affinity to the pods, and end the reservation when the job ends; ${KUEUE_MAX_TIME} limits the run time of a Job that Kueue manages.`,
      }),
    ),
    affinity: optional(affinity),
    tolerations: optional(
      array(toleration, {
        description:
          'For spec.tolerations of the pod template: toleration of the taint `<GPU resource>:NoSchedule`.',
      }),
    ),
    activeDeadlineSeconds: optional(
      integer({
        description:
          'For spec.activeDeadlineSeconds of the Job: time from the reservation to its end, or to the next maintenance if that is earlier. Not set if neither is known.',
        format: 'int64',
      }),
    ),
    resources: optional(resources),
    resourceClaims: optional(
      array(resourceClaim, {
        description: 'For spec.resourceClaims of the pod template, if DRA manages the GPUs.',
      }),
    ),
    resourceClaimTemplate: optional(
      embedded({
        description: 'ResourceClaimTemplate to create for the job. Set if DRA manages the GPUs of the node.',
      }),
    ),
  },
  { description: 'Fields to copy into the manifest of a Job, so that the Job runs on the reserved node.' },
);
export type Placement = schema.ValueOf<typeof placement>;

/** Fields of a reservation that its placement depends on. */
export interface PlacedReservation {
  readonly namespace: string;
  /** Name of the GPUInfo. */
  readonly name: string;
  /** Number of reserved GPUs; 0 for a node without GPUs. */
  readonly gpus: number;
  /**
   * Seconds from the start of the reservation to its end or to maintenance, whichever is earlier; undefined if neither
   * is known.
   */
  readonly seconds: number | undefined;
}

/**
 * Returns what a job needs in order to run on its reserved node. The affinity refers to the Node by the field
 * `metadata.name`, because the label `kubernetes.io/hostname` may differ from the name of the Node.
 */
export function placementOf(
  { namespace, name, gpus, seconds }: PlacedReservation,
  { name: node, resource, deviceClass }: Pick<Candidate, 'name' | 'resource' | 'deviceClass'>,
): Placement {
  const limit = seconds === undefined ? undefined : Math.max(1, Math.min(Math.floor(seconds), MOST_SECONDS));
  const template = `${name}-gpu`;
  return {
    labels: {
      // A label value has at most 63 characters; the name of an object can be longer.
      ...(name.length <= MAX_LABEL_LENGTH && { [GPUINFO_LABEL]: name }),
      ...(limit !== undefined && { [KUEUE_MAX_TIME]: String(limit) }),
    },
    affinity: affinityTo(node),
    ...(limit !== undefined && { activeDeadlineSeconds: limit }),
    ...(gpus > 0 &&
      resource !== undefined && {
        tolerations: [{ key: resource, operator: 'Exists', effect: 'NoSchedule' }],
        resources: { limits: { [resource]: String(gpus) } },
      }),
    ...(gpus > 0 &&
      deviceClass !== undefined && {
        resources: { claims: [{ name: CLAIM }] },
        resourceClaims: [{ name: CLAIM, resourceClaimTemplateName: template }],
        resourceClaimTemplate: claimTemplate({ namespace, name: template }, deviceClass, gpus),
      }),
  };
}

/** Returns the affinity that selects one node. */
export function affinityTo(node: string) {
  return {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [termOf(node)] },
    },
  };
}

/** Returns the first node that the required affinity of a pod selects by name; undefined if there is none. */
export function pinnedNode({ affinity }: PodSpec): string | undefined {
  const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  for (const { matchFields = [] } of required?.nodeSelectorTerms ?? [])
    for (const { key, operator, values = [] } of matchFields)
      if (key === 'metadata.name' && operator === 'In' && values.length === 1) return values[0];
  return undefined;
}

/** Returns the node selector term that selects one node by name. */
export function termOf(node: string) {
  return { matchFields: [{ key: 'metadata.name', operator: 'In', values: [node] }] };
}

function claimTemplate(
  metadata: { readonly namespace: string; readonly name: string },
  deviceClassName: string,
  count: number,
) {
  const exactly = { deviceClassName, allocationMode: 'ExactCount', count };
  return {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaimTemplate',
    metadata,
    spec: { spec: { devices: { requests: [{ name: CLAIM, exactly }] } } },
  };
}
