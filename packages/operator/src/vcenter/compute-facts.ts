/** A GPU of an ESXi host. */
export interface HostGpu {
  /** PCI id, such as `0000:3b:00.0`. */
  readonly id: string;
  readonly model: string;
  readonly vendor: string;
  /** How machines use the GPU; `graphics` when it is configured neither for passthrough nor for vGPU. */
  readonly mode: 'passthrough' | 'vgpu' | 'graphics';
  /**
   * Whether a powered-on machine uses the GPU. Also true while the devices of a powered-on machine on the host are
   * unknown.
   */
  readonly isInUse: boolean;
}

/** Planned or running maintenance of a host. */
export interface Maintenance {
  /** Start in milliseconds since the epoch; 0 or a time in the past when the maintenance has begun. */
  readonly startsAt: number;
  /** Where the start time comes from, such as `vCenter scheduled task 'Patch host'`. */
  readonly source: string;
}

/** An ESXi host. */
export interface HostFacts {
  /** `<vCenter name>/<managed object reference>`. */
  readonly id: string;
  readonly name: string;
  /** Whether vCenter is connected to the host, and the host is powered on. */
  readonly isConnected: boolean;
  readonly isInMaintenance: boolean;
  readonly gpus: readonly HostGpu[];
  /** Known planned or running maintenance, earliest first. */
  readonly maintenance: readonly Maintenance[];
  /**
   * Reasons why some planned maintenance of the host may be unknown, such as an invalid custom attribute. One sentence
   * each.
   */
  readonly warnings: readonly string[];
}

/** A GPU that is attached to a machine. */
export interface MachineGpu {
  readonly model: string;
  readonly mode: 'passthrough' | 'vgpu';
}

/** A virtual machine. */
export interface MachineFacts {
  /** `<vCenter name>/<managed object reference>`. */
  readonly id: string;
  readonly name: string;
  /** BIOS UUID (`config.uuid`), in lower case. */
  readonly uuid: string;
  /** Instance UUID of the machine in vCenter, in lower case. */
  readonly instanceUuid: string;
  readonly isPoweredOn: boolean;
  /** Id of the host of the machine. A machine that is powered off is also registered on a host. */
  readonly hostId: string | undefined;
  readonly gpus: readonly MachineGpu[];
  readonly cpuDemandMhz: number;
  /** Active guest memory (`guestMemoryUsage`). */
  readonly memoryUsageMb: number;
}

/** What changed in the facts since the last report. A machine is either in `machines` or in `usage`, not in both. */
export interface ComputeChange {
  /** Hosts that appeared, changed or disappeared, by id. */
  readonly hosts: ReadonlySet<string>;
  /** Machines that appeared, disappeared, or changed in anything but their usage, by id. */
  readonly machines: ReadonlySet<string>;
  /** Machines that changed only in their usage (CPU demand, memory), by id. vCenter reports usage every 20 seconds. */
  readonly usage: ReadonlySet<string>;
  /** Whether the facts of a vCenter became stale, or became current again. */
  readonly isStalenessChanged: boolean;
}

/** The hosts and machines of all vCenters, from caches that are fed by change notifications. */
export interface ComputeFacts {
  /** Names of the vCenters with facts that are not current; empty if all facts are current. */
  readonly staleVcenters: readonly string[];
  host(id: string): HostFacts | undefined;
  /**
   * Returns the machine with this BIOS or instance UUID, in upper or lower case. Also accepts a BIOS UUID with swapped
   * bytes in its first three fields: Linux guests report this form on some hardware versions. If several machines have
   * the UUID, returns the one that is powered on; undefined if none, or more than one, is powered on.
   */
  machineByUuid(uuid: string): MachineFacts | undefined;
  /** Returns the machine with this name; undefined if no machine, or more than one, has the name. Ignores templates. */
  machineByName(name: string): MachineFacts | undefined;
  /** Calls the listener after each change. @returns a function that ends the subscription */
  subscribe(listener: (change: ComputeChange) => void): () => void;
  /** Resolves when the facts of all vCenters have been read once, or rejects when the signal aborts. */
  synced(signal: AbortSignal): Promise<void>;
}

/** Facts of an operator without a vCenter: always empty and current. */
export const NO_VSPHERE: ComputeFacts = {
  staleVcenters: [],
  host: () => undefined,
  machineByUuid: () => undefined,
  machineByName: () => undefined,
  subscribe: () => () => undefined,
  synced: () => Promise.resolve(),
};
