import { type Inventory, isEqual, type Ref, type VcenterClient } from '@vmwright/vsphere';
import { type AttachedDevice, attachedDevices, isPassthrough } from './attached-devices.ts';

const DEVICES = 'config.hardware.device';

export interface AttachedDeviceWatchOptions {
  readonly client: Pick<VcenterClient, 'inventory'>;
  /** Called with the reference of each machine whose devices may have changed. */
  readonly onChange: (machine: string) => void;
  /** Called when `isLive` may have changed. */
  readonly onLiveness: () => void;
}

/**
 * Watches which PCI devices and vGPUs are attached to machines. Covers the hosts that `watch` sets.
 *
 * vCenter reports all virtual devices of a machine together (several kilobytes), and reports them again after each
 * snapshot. So the watch covers only hosts with GPUs, and keeps only PCI devices in memory.
 */
export class AttachedDeviceWatch implements Disposable {
  readonly #options: AttachedDeviceWatchOptions;
  #hosts: ReadonlySet<string> = new Set();
  #current: Inventory | undefined;
  /** Watch of a new set of hosts. It replaces `#current` when all machines on these hosts are loaded. */
  #next: Inventory | undefined;

  constructor(options: AttachedDeviceWatchOptions) {
    this.#options = options;
  }

  /** Whether the devices on all watched hosts are current. */
  get isLive(): boolean {
    if (this.#next !== undefined) return false;
    return this.#current === undefined || this.#current.isLive;
  }

  /**
   * Sets the watched hosts. Does nothing if the set of hosts is unchanged.
   * @param hosts values of the hosts' references in vCenter
   */
  watch(hosts: ReadonlySet<string>): void {
    if (hosts.symmetricDifference(this.#hosts).size === 0) return;
    this.#hosts = new Set(hosts);
    this.#next?.[Symbol.dispose]();
    this.#next = undefined;
    if (hosts.size === 0) this.#replace(undefined);
    else this.#open();
  }

  /**
   * Returns the devices that are attached to a machine. Undefined if vCenter has not reported them yet, or if the host
   * of the machine is not watched.
   */
  of(machine: string): readonly AttachedDevice[] | undefined {
    return devicesIn(this.#current, machine);
  }

  #open(): void {
    const { client, onChange, onLiveness } = this.#options;
    const owners = [...this.#hosts].toSorted().map((value) => ({ type: 'HostSystem', value }));
    const inventory = client.inventory({
      properties: { VirtualMachine: [DEVICES] },
      lists: () => owners.map((owner) => ({ owner, path: 'vm' })),
      reduce: (_, devices) => (Array.isArray(devices) ? devices.filter(isPassthrough) : []),
    });
    this.#next = inventory;
    inventory.onChange(({ object }) => {
      if (inventory === this.#current) onChange(object.ref.value);
    });
    inventory.onLiveness(() => {
      if (inventory.isLive && inventory === this.#next) {
        this.#next = undefined;
        this.#replace(inventory);
      }
      onLiveness();
    });
  }

  #replace(next: Inventory | undefined): void {
    const before = this.#current;
    this.#current = next;
    for (const machine of new Set([...machinesIn(before), ...machinesIn(next)]))
      if (!isEqual(devicesIn(before, machine), devicesIn(next, machine))) this.#options.onChange(machine);
    before?.[Symbol.dispose]();
  }

  [Symbol.dispose](): void {
    this.#next?.[Symbol.dispose]();
    this.#current?.[Symbol.dispose]();
  }
}

function machinesIn(inventory: Inventory | undefined): readonly string[] {
  return inventory?.list('VirtualMachine').map(({ ref: { value } }) => value) ?? [];
}

function devicesIn(inventory: Inventory | undefined, value: string): readonly AttachedDevice[] | undefined {
  const ref: Ref<'VirtualMachine'> = { type: 'VirtualMachine', value };
  const machine = inventory?.get(ref);
  return machine && attachedDevices(machine.properties[DEVICES]);
}
