/** Why no job can start on a node, whatever the request. */
export interface Blocker {
  readonly reason:
    | 'NotReady'
    | 'Unschedulable'
    | 'Tainted'
    | 'PoweredOff'
    | 'HostUnavailable'
    | 'HostInMaintenance'
    /** The facts are missing or too old for a decision. An existing reservation is kept, and no new one is made. */
    | 'FactsUnknown';
  /** Text for the user, the same on every evaluation, such as `taint dedicated=ml:NoSchedule`. */
  readonly message: string;
}

/** Planned maintenance of a node or of its host. */
export interface Maintenance {
  /** Milliseconds since 1970. */
  readonly startsAt: number;
  /** Milliseconds since 1970; undefined if the end is not known. */
  readonly endsAt?: number | undefined;
  /** Where the time comes from: `label cloud.google.com/scheduled-maintenance-time`. */
  readonly source: string;
}

/** GPUs of a node. */
export interface NodeGpus {
  /** Id of the `GpuPool` that the node's GPUs belong to. */
  readonly pool: string;
  /** Models, such as `NVIDIA-A100-SXM4-40GB`, sorted. Empty if they are unknown. */
  readonly models: readonly string[];
}

/** A Kubernetes node, with all facts that the choice of a node depends on. */
export interface Candidate {
  readonly name: string;
  /** ESXi host of the node's VM; the node's own name if it is not on vSphere. */
  readonly host: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Undefined if a job can start on the node. */
  readonly blocker: Blocker | undefined;
  /** Undefined if neither the node nor its host has a GPU. */
  readonly gpus: NodeGpus | undefined;
  /** CPU demand of the VM in MHz. For a node that is not on vSphere: CPU requests of the pods in millicores. */
  readonly cpuUsage: number;
  /** Memory that the VM uses, in MB. For a node that is not on vSphere: memory requests of the pods in MB. */
  readonly memoryUsage: number;
  /** Current and future maintenance, in order of `startsAt`. */
  readonly maintenance: readonly Maintenance[];
  /** DRA device class of the GPUs, for a ResourceClaimTemplate; undefined if DRA does not manage them. */
  readonly deviceClass?: string | undefined;
  /**
   * Extended resource of the GPUs, such as `nvidia.com/gpu`; undefined if the node announces no extended resource for
   * them.
   */
  readonly resource?: string | undefined;
}

/** GPUs that pods or VMs use. */
export interface GpuUse {
  /** UID of the GPUInfo that the pods refer to; undefined for other pods, and for VMs. */
  readonly holder: string | undefined;
  readonly gpus: number;
}

/**
 * A set of GPUs that reservations count against. It consists of the GPUs that one node announces. If the node announces
 * none, it consists of the GPUs of the VM of the node. If the VM has none either, it consists of the GPUs of the ESXi
 * host. Several nodes on the host can share this last pool.
 */
export interface GpuPool {
  readonly id: string;
  /** Number of usable GPUs, whether in use or not. */
  readonly total: number;
  readonly uses: readonly GpuUse[];
}

/** The job that uses the reservation of a GPUInfo: pods, and the Jobs that control them. */
export interface JobFacts {
  /**
   * - `Active`: a pod has not ended, or a Job that has had pods has not ended.
   * - `Ended`: all pods and Jobs have ended.
   * - `Waiting`: a Job or JobSet that has not ended names the GPUInfo in its pod template, but none of its pods is
   *   known.
   */
  readonly state: 'Active' | 'Ended' | 'Waiting';
  /** Nodes to which pods that have not ended are bound, sorted. */
  readonly boundTo: readonly string[];
  /** Nodes that pending pods wait for because of their affinity, sorted. */
  readonly pinnedTo: readonly string[];
  /** Whether a controller, such as a StatefulSet or a JobSet, may start new pods after all pods have ended. */
  readonly mayRestart: boolean;
  /** Whether the JobSet that controls the Jobs has ended or was deleted. It starts no more pods then. @default false */
  readonly isOver?: boolean;
}

/** Why facts are incomplete. */
export interface Warning {
  /** A sentence: `the facts of vCenter 'default' are not current`. */
  readonly message: string;
  /** Names of the nodes that the warning concerns; undefined if it may concern any node. */
  readonly nodes?: readonly string[] | undefined;
}

/** What the allocation of nodes to requests is based on. */
export interface Facts {
  /**
   * Increases with every change that can affect a decision. A change of only the CPU or memory usage does not increase
   * it.
   */
  readonly version: number;
  /** Sorted by name. */
  readonly candidates: readonly Candidate[];
  readonly pools: ReadonlyMap<string, GpuPool>;
  /** The job that uses the reservation of each GPUInfo, by UID of the GPUInfo. */
  readonly jobs: ReadonlyMap<string, JobFacts>;
  /** Reasons why facts are incomplete, sorted by message, without duplicates. */
  readonly warnings: readonly Warning[];
  /** Whether GPUs and maintenance are simulated with random values (`--gpu-source=simulated`). */
  readonly isSimulated: boolean;
}
