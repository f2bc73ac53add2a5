import { unlessAborted } from '@vmwright/core';
import type { Timer, World } from '@vmwright/runtime';
import {
  type Inventory,
  type InventoryChange,
  isA,
  isEqual,
  type ManagedObject,
  type Properties,
  type TypedManagedObject,
  type VcenterClient,
  type Vim25,
} from '@vmwright/vsphere';
import { AttachedDeviceWatch } from './attached-device-watch.ts';
import type { ComputeChange, HostFacts, MachineFacts } from './compute-facts.ts';
import { STALE_MS } from './health.ts';
import { type GpuDevice, gpuDevices, hostGpus, isGpu, machineGpus } from './host-gpus.ts';
import { HostPlans } from './host-plans.ts';

const HOST = [
  ...(['name', 'parent', 'customValue', 'runtime.connectionState', 'runtime.inMaintenanceMode'] as const),
  ...(['runtime.powerState', 'config.graphicsInfo', 'config.pciPassthruInfo', 'hardware.pciDevice'] as const),
];
/** Properties that vCenter changes every 20 seconds on each machine that is powered on. */
const USAGE = ['summary.quickStats.overallCpuDemand', 'summary.quickStats.guestMemoryUsage'] as const;
const MACHINE = [
  ...(['name', 'config.template', 'config.uuid', 'config.instanceUuid'] as const),
  ...(['runtime.powerState', 'runtime.connectionState', 'runtime.host'] as const),
  ...USAGE,
];

type Host = TypedManagedObject<'HostSystem'>;
type Machine = TypedManagedObject<'VirtualMachine'>;

export interface ComputeInventoryOptions {
  readonly world: Pick<World, 'after'>;
  readonly client: Pick<VcenterClient, 'inventory'>;
  /** Name of the vCenter; first part of all ids. */
  readonly name: string;
  /** Name of the custom attribute with the start of a host's maintenance. */
  readonly maintenanceAttribute: string;
}

/**
 * The hosts and machines of a vCenter, fed by change notifications.
 *
 * Flow: the first watch covers hosts and machines. The second covers scheduled tasks and custom attributes. The third
 * covers the devices of machines on hosts with GPUs. All three use one property collector, so the number of requests
 * does not grow with the number of objects or changes. Each response of vCenter leads to at most one report to the
 * subscribers.
 *
 * Guarantees: a host is reported only if its facts have changed. While vCenter does not respond, the last facts remain
 * available, and `isStale` becomes true.
 *
 * vCenter privileges: System.View and System.Read (the role Read-only) on the root folder, with propagation to its
 * children. Scheduled tasks (`ScheduledTaskManager.scheduledTask`) and custom attributes (`CustomFieldsManager.field`,
 * `customValue`) need System.View only. Nothing is changed in vCenter.
 */
export class ComputeInventory implements Disposable {
  readonly name: string;
  readonly #world: Pick<World, 'after'>;
  readonly #inventory: Inventory;
  readonly #plans: HostPlans;
  readonly #devices: AttachedDeviceWatch;
  readonly #listeners = new Set<(change: ComputeChange) => void>();
  readonly #synced = Promise.withResolvers<void>();
  /** Facts of all hosts, by reference. */
  readonly #hosts = new Map<string, HostFacts>();
  /** Facts of machines by reference. Computed when they are requested, and dropped when the machine changes. */
  readonly #machines = new Map<string, MachineFacts>();
  /** GPUs by host. Each change of a host creates a new `Host` object, so the entry is computed again. */
  readonly #gpus = new WeakMap<Host, readonly GpuDevice[]>();
  /** References of the hosts with GPUs. */
  readonly #gpuHosts = new Set<string>();
  /** References of the hosts that may have changed since the last report, and of the machines that have changed. */
  readonly #pending = { hosts: new Set<string>(), machines: new Set<string>(), usage: new Set<string>() };
  #isReportScheduled = false;
  #isStale = true;
  #staleTimer: Timer | undefined;
  #isClosed = false;

  constructor({ world, client, name, maintenanceAttribute }: ComputeInventoryOptions) {
    const onLiveness = () => this.#scheduleReport();
    this.name = name;
    this.#world = world;
    this.#inventory = client.inventory({
      properties: { HostSystem: HOST, VirtualMachine: MACHINE },
      indexes: { name: nameOf, uuid: uuidOf, instanceUuid: instanceUuidOf, host: hostOf },
      reduce,
    });
    this.#inventory.onChange((change) => this.#onChange(change));
    this.#inventory.onLiveness(onLiveness);
    this.#plans = new HostPlans({
      client,
      attribute: maintenanceAttribute,
      onChange: () => {
        for (const value of this.#hosts.keys()) this.#pending.hosts.add(value);
        this.#scheduleReport();
      },
      onLiveness,
    });
    this.#devices = new AttachedDeviceWatch({
      client,
      onChange: (machine) => {
        this.#markMachine(machine);
        this.#scheduleReport();
      },
      onLiveness,
    });
    this.#synced.promise.catch(() => undefined); // prevents an unhandled rejection; callers of `synced` get the error
    this.#inventory.synced().catch(this.#synced.reject);
  }

  /** Whether the facts have never been read completely, or have been outdated for at least `STALE_MS`. */
  get isStale(): boolean {
    return this.#isStale;
  }

  /** Resolves when the facts have been read once. @throws StoppedError when the client is stopped before that */
  synced(signal?: AbortSignal): Promise<void> {
    return unlessAborted(this.#synced.promise, signal);
  }

  /** Calls the listener after each change. @returns a function that ends the subscription */
  subscribe(listener: (change: ComputeChange) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Returns a host by id. */
  host(id: string): HostFacts | undefined {
    const prefix = `${this.name}/`;
    return id.startsWith(prefix) ? this.#hosts.get(id.slice(prefix.length)) : undefined;
  }

  /**
   * Returns the machines with this name, BIOS UUID or instance UUID. A UUID must be in lower case. Ignores templates.
   */
  machinesBy(index: 'name' | 'uuid' | 'instanceUuid', key: string): readonly MachineFacts[] {
    return this.#inventory.by('VirtualMachine', index, key).map((machine) => this.#machineFacts(machine));
  }

  #onChange(change: InventoryChange): void {
    const { value } = change.object.ref;
    if (!isMachine(change.object)) this.#pending.hosts.add(value);
    else if (isUsageChange(change)) {
      this.#machines.delete(value);
      this.#pending.usage.add(value);
    } else {
      this.#markMachine(value);
      for (const machine of change.kind === 'changed' ? [change.object, change.before] : [change.object])
        this.#markHost(hostOf(machine));
    }
    this.#scheduleReport();
  }

  #markMachine(value: string): void {
    this.#machines.delete(value);
    this.#pending.machines.add(value);
    this.#markHost(this.#inventory.get({ type: 'VirtualMachine', value })?.properties['runtime.host']?.value);
  }

  #markHost(value: string | undefined): void {
    if (value !== undefined) this.#pending.hosts.add(value);
  }

  /** Reports all changes of one response together. */
  #scheduleReport(): void {
    if (this.#isReportScheduled) return;
    this.#isReportScheduled = true;
    queueMicrotask(() => {
      this.#isReportScheduled = false;
      if (!this.#isClosed) this.#report();
    });
  }

  #report(): void {
    if (!this.#inventory.isSynced) return;
    if (this.#inventory.isLive) this.#plans.checkRejected();
    const { machines, usage } = this.#pending;
    const hosts = [...this.#pending.hosts].filter((value) => this.#updateHost(value));
    this.#pending.hosts.clear();
    this.#devices.watch(this.#gpuHosts);
    const isStalenessChanged = this.#updateStaleness();
    const change: ComputeChange = {
      hosts: this.#ids(hosts),
      machines: this.#ids(machines),
      usage: this.#ids(usage.difference(machines)),
      isStalenessChanged,
    };
    machines.clear();
    usage.clear();
    if (change.hosts.size + change.machines.size + change.usage.size > 0 || isStalenessChanged)
      for (const listener of [...this.#listeners]) listener(change);
  }

  /** Computes the facts of a host again. @returns whether they have changed */
  #updateHost(value: string): boolean {
    const host = this.#inventory.get({ type: 'HostSystem', value });
    const before = this.#hosts.get(value);
    if (host === undefined) {
      this.#gpuHosts.delete(value);
      return this.#hosts.delete(value);
    }
    if (this.#gpusOf(host).length === 0) this.#gpuHosts.delete(value);
    else this.#gpuHosts.add(value);
    const facts = this.#hostFacts(host);
    if (isEqual(before, facts)) return false;
    this.#hosts.set(value, facts);
    // Cached facts of machines contain the models of their host's GPUs. So these facts are dropped when the GPUs
    // change.
    if (!isEqual(before?.gpus, facts.gpus))
      for (const { ref } of this.#inventory.by('VirtualMachine', 'host', value))
        this.#machines.delete(ref.value);
    return true;
  }

  #updateStaleness(): boolean {
    const isLive = this.#inventory.isLive && this.#plans.isLive && this.#devices.isLive;
    const wasStale = this.#isStale;
    if (isLive) {
      this.#staleTimer?.cancel();
      this.#staleTimer = undefined;
      this.#isStale = false;
      this.#synced.resolve();
    } else if (!wasStale)
      this.#staleTimer ??= this.#world.after(STALE_MS, () => {
        this.#isStale = true;
        for (const listener of [...this.#listeners]) listener(STALENESS_CHANGE);
      });
    return this.#isStale !== wasStale;
  }

  #hostFacts(host: Host): HostFacts {
    const { value } = host.ref;
    const { properties } = host;
    const gpus = this.#gpusOf(host);
    const machines = gpus.length === 0 ? [] : this.#inventory.by('VirtualMachine', 'host', value);
    const users = machines
      .filter(isPoweredOn)
      .map(({ ref }) => ({ machine: ref.value, devices: this.#devices.of(ref.value) }));
    return {
      id: this.#id(value),
      name: properties.name ?? value,
      isConnected: isConnected(properties),
      isInMaintenance: properties['runtime.inMaintenanceMode'] === true,
      gpus: hostGpus(gpus, users),
      ...this.#plans.of(host),
    };
  }

  #machineFacts(machine: Machine): MachineFacts {
    const { value } = machine.ref;
    const known = this.#machines.get(value);
    if (known !== undefined) return known;
    const { properties } = machine;
    const host = properties['runtime.host'];
    const on = host && this.#inventory.get({ type: 'HostSystem', value: host.value });
    const facts = {
      id: this.#id(value),
      name: properties.name ?? value,
      uuid: properties['config.uuid']?.toLowerCase() ?? '',
      instanceUuid: properties['config.instanceUuid']?.toLowerCase() ?? '',
      isPoweredOn: isPoweredOn(machine),
      hostId: host && this.#id(host.value),
      gpus: on === undefined ? [] : machineGpus(this.#gpusOf(on), this.#devices.of(value) ?? []),
      cpuDemandMhz: properties['summary.quickStats.overallCpuDemand'] ?? 0,
      memoryUsageMb: properties['summary.quickStats.guestMemoryUsage'] ?? 0,
    };
    this.#machines.set(value, facts);
    return facts;
  }

  #gpusOf(host: Host): readonly GpuDevice[] {
    const known = this.#gpus.get(host);
    if (known !== undefined) return known;
    const gpus = gpuDevices(host.properties);
    this.#gpus.set(host, gpus);
    return gpus;
  }

  #id(value: string): string {
    return `${this.name}/${value}`;
  }

  #ids(values: Iterable<string>): ReadonlySet<string> {
    return new Set(Array.from(values, (value) => this.#id(value)));
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#staleTimer?.cancel();
    this.#listeners.clear();
    this.#devices[Symbol.dispose]();
    this.#plans[Symbol.dispose]();
    this.#inventory[Symbol.dispose]();
  }
}

const STALENESS_CHANGE: ComputeChange = {
  hosts: new Set<string>(),
  machines: new Set<string>(),
  usage: new Set<string>(),
  isStalenessChanged: true,
};

/**
 * Keeps only the PCI devices that are GPUs, and the passthrough states of devices with active passthrough or SR-IOV.
 * This saves memory: a host has about a hundred PCI devices and as many passthrough states.
 */
function reduce(path: string, value: unknown): unknown {
  if (!Array.isArray(value)) return value;
  switch (path) {
    case 'hardware.pciDevice':
      return value.filter(isGpu);
    case 'config.pciPassthruInfo':
      return value.filter(isActive);
    default:
      return value;
  }
}

function isActive(info: Vim25['HostPciPassthruInfo']): boolean {
  return info.passthruActive || (isA(info, 'HostSriovInfo') && info.sriovActive);
}

function isConnected(host: Partial<Properties['HostSystem']>): boolean {
  const isOff = host['runtime.powerState'] === 'poweredOff' || host['runtime.powerState'] === 'standBy';
  return host['runtime.connectionState'] === 'connected' && !isOff;
}

/**
 * Returns whether a machine is powered on. If a machine is orphaned, inaccessible or invalid, vCenter reports an
 * outdated power state, so the result is false.
 */
function isPoweredOn({ properties }: Machine): boolean {
  const connection = properties['runtime.connectionState'];
  const isLost = connection === 'orphaned' || connection === 'inaccessible' || connection === 'invalid';
  return properties['runtime.powerState'] === 'poweredOn' && !isLost;
}

function isUsageChange(change: InventoryChange): boolean {
  if (change.kind !== 'changed') return false;
  const { object, before } = change;
  return MACHINE.every(
    (path) =>
      USAGE.some((usage) => usage === path) || isEqual(object.properties[path], before.properties[path]),
  );
}

function isMachine(object: ManagedObject): object is ManagedObject & Machine {
  return object.ref.type === 'VirtualMachine';
}

function nameOf(object: ManagedObject): string | undefined {
  return indexed(object)?.name;
}

function uuidOf(object: ManagedObject): string | undefined {
  return indexed(object)?.['config.uuid']?.toLowerCase();
}

function instanceUuidOf(object: ManagedObject): string | undefined {
  return indexed(object)?.['config.instanceUuid']?.toLowerCase();
}

function hostOf(object: ManagedObject): string | undefined {
  return isMachine(object) ? object.properties['runtime.host']?.value : undefined;
}

/** Returns the properties of a machine; undefined for templates and for other kinds of objects. */
function indexed(object: ManagedObject): Machine['properties'] | undefined {
  return isMachine(object) && object.properties['config.template'] !== true ? object.properties : undefined;
}
