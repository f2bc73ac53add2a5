import type { KubeObject } from '@vmwright/runtime';
import { apiGroup } from '../api-group.ts';

/*
 * Kinds of Kubernetes, JobSet and Karpenter that the facts come from. The types contain only the fields that are read.
 */

const core = apiGroup('', 'v1');
const batch = apiGroup('batch', 'v1');
const jobset = apiGroup('jobset.x-k8s.io', 'v1alpha2');
const dra = apiGroup('resource.k8s.io', 'v1');
const karpenter = apiGroup('karpenter.sh', 'v1');

export interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
}

interface NodeCondition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly lastTransitionTime?: string;
}

export type Quantities = Readonly<Record<string, string | number>>;

export interface Node extends KubeObject {
  readonly spec?: {
    readonly providerID?: string;
    readonly unschedulable?: boolean;
    readonly taints?: readonly Taint[];
  };
  readonly status?: {
    readonly conditions?: readonly NodeCondition[];
    readonly capacity?: Quantities;
    readonly allocatable?: Quantities;
    readonly nodeInfo?: { readonly systemUUID?: string };
  };
}

export const Node = core.cluster<Node>('Node');

export interface Container {
  readonly name?: string;
  readonly restartPolicy?: string;
  readonly resources?: { readonly requests?: Quantities; readonly limits?: Quantities };
}

interface NodeSelectorRequirement {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

interface NodeSelectorTerm {
  readonly matchExpressions?: readonly NodeSelectorRequirement[];
  readonly matchFields?: readonly NodeSelectorRequirement[];
}

interface Toleration {
  readonly key?: string;
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
}

export interface PodSpec {
  readonly nodeName?: string;
  readonly initContainers?: readonly Container[];
  readonly containers?: readonly Container[];
  readonly overhead?: Quantities;
  readonly resources?: { readonly requests?: Quantities };
  readonly affinity?: {
    readonly nodeAffinity?: {
      readonly requiredDuringSchedulingIgnoredDuringExecution?: {
        readonly nodeSelectorTerms?: readonly NodeSelectorTerm[];
      };
      readonly preferredDuringSchedulingIgnoredDuringExecution?: readonly object[];
    };
  };
  readonly tolerations?: readonly Toleration[];
  readonly activeDeadlineSeconds?: number;
}

export interface Pod extends KubeObject {
  readonly spec?: PodSpec;
  readonly status?: { readonly phase?: string };
}

export const Pod = core.namespaced<Pod>('Pod');

export interface Job extends KubeObject {
  readonly spec?: {
    readonly template?: { readonly metadata?: { readonly labels?: Readonly<Record<string, string>> } };
  };
  readonly status?: {
    /** Number of pods that have failed; `succeeded` is the number of pods that have succeeded. */
    readonly failed?: number;
    readonly succeeded?: number;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

export const Job = batch.namespaced<Job>('Job');

/** A JobSet of the project kubernetes-sigs/jobset: Jobs that start and end together. */
export interface JobSet extends KubeObject {
  readonly spec?: {
    readonly replicatedJobs?: readonly {
      readonly template?: { readonly spec?: Pick<NonNullable<Job['spec']>, 'template'> };
    }[];
  };
  /** `Completed` or `Failed`; empty before the end. */
  readonly status?: { readonly terminalState?: string };
}

export const JobSet = jobset.namespaced<JobSet>('JobSet');

/** Value of an attribute of a device: exactly one field is set. */
interface DeviceAttribute {
  readonly string?: string;
  readonly version?: string;
  readonly int?: number;
  readonly bool?: boolean;
}

/** A device as a DRA driver publishes it. */
export interface Device {
  readonly name: string;
  readonly attributes?: Readonly<Record<string, DeviceAttribute>>;
  readonly taints?: readonly Taint[];
}

/** Devices that a DRA driver publishes for one node. Slices for several nodes are not read. */
export interface ResourceSlice extends KubeObject {
  readonly spec?: {
    readonly driver: string;
    readonly nodeName?: string;
    readonly pool: {
      readonly name: string;
      readonly generation: number;
      readonly resourceSliceCount: number;
    };
    readonly devices?: readonly Device[];
  };
}

export const ResourceSlice = dra.cluster<ResourceSlice>('ResourceSlice');

/** A device that the scheduler has allocated to a claim. */
export interface AllocatedDevice {
  readonly driver: string;
  readonly pool: string;
  readonly device: string;
  /** Access for monitoring, which does not occupy the device. */
  readonly adminAccess?: boolean;
}

export interface ResourceClaim extends KubeObject {
  readonly status?: {
    readonly allocation?: { readonly devices?: { readonly results?: readonly AllocatedDevice[] } };
    readonly reservedFor?: readonly {
      readonly apiGroup?: string;
      readonly resource: string;
      readonly name: string;
    }[];
  };
}

export const ResourceClaim = dra.namespaced<ResourceClaim>('ResourceClaim');

/** Karpenter's NodeClaim: a machine that Karpenter has requested for a node. */
export interface NodeClaim extends KubeObject {
  /** `expireAfter` is a duration such as `720h`, or `Never`. */
  readonly spec?: { readonly expireAfter?: string };
  readonly status?: { readonly nodeName?: string };
}

export const NodeClaim = karpenter.cluster<NodeClaim>('NodeClaim');
