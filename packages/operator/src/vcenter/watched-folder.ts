import type { World } from '@vmwright/runtime';
import {
  type Datacenter,
  type Inventory,
  isRef,
  type ManagedObject,
  type Ref,
  type TypedManagedObject,
  type VcenterClient,
} from '@vmwright/vsphere';
import { type Ownership, ownershipOf } from './ownership.ts';

/** Properties that the inventory contains for each machine. */
const MACHINE = [
  ...(['name', 'parent', 'config.template'] as const),
  ...(['config.instanceUuid', 'config.extraConfig', 'runtime.powerState'] as const),
  ...(['runtime.connectionState', 'runtime.host', 'guest.ipAddress'] as const),
  ...(['config.hardware.numCPU', 'config.hardware.memoryMB'] as const),
  ...(['config.cpuHotAddEnabled', 'config.memoryHotAddEnabled', 'config.hotPlugMemoryLimit'] as const),
];

/** A machine with vmwright's ownership labels. */
export interface OwnedMachine {
  readonly ref: Ref<'VirtualMachine'>;
  readonly ownership: Ownership;
  readonly properties: TypedManagedObject<'VirtualMachine'>['properties'];
}

export interface WatchedFolderOptions {
  readonly world: Pick<World, 'monotonic'>;
  readonly client: VcenterClient;
  readonly datacenter: Datacenter;
  readonly ref: Ref<'Folder'>;
  /** `about.instanceUuid` of the vCenter. */
  readonly vcenterId: string;
  /** Called with the owner (`namespace/name`) of each machine that changes. */
  readonly enqueue: (owner: string) => void;
}

/** A folder that contains groups' folders, with an inventory of all machines below it, fed by change notifications. */
export class WatchedFolder implements Disposable {
  readonly datacenter: Datacenter;
  readonly ref: Ref<'Folder'>;
  readonly vcenterId: string;
  readonly #inventory: Inventory;
  readonly #world: Pick<World, 'monotonic'>;
  #lastLiveAt: number;

  constructor({ world, client, datacenter, ref, vcenterId, enqueue }: WatchedFolderOptions) {
    this.datacenter = datacenter;
    this.ref = ref;
    this.vcenterId = vcenterId;
    this.#world = world;
    this.#lastLiveAt = world.monotonic();
    this.#inventory = client.inventory({
      container: ref,
      properties: { VirtualMachine: MACHINE, Folder: ['name', 'parent'] },
      indexes: { uid: uidOf, child: childOf },
    });
    this.#inventory.onChange((change) => {
      const objects = change.kind === 'changed' ? [change.object, change.before] : [change.object];
      const owners = objects.flatMap((object) => ownedMachineFrom(object)?.ownership ?? []);
      for (const owner of new Set(owners.map(({ namespace, name }) => `${namespace}/${name}`)))
        enqueue(owner);
    });
  }

  /** Resolves when the inventory has been read completely for the first time. */
  synced(signal: AbortSignal): Promise<void> {
    return this.#inventory.synced(signal);
  }

  /** Time since the inventory was last current, in milliseconds. */
  get staleMs(): number {
    const now = this.#world.monotonic();
    if (this.#inventory.isLive) this.#lastLiveAt = now;
    return now - this.#lastLiveAt;
  }

  /** Whether the inventory is current. Stale inventory blocks actions. */
  get isLive(): boolean {
    return this.#inventory.isLive;
  }

  /** Returns the machines of the owner with this UID. */
  machinesOf(uid: string): readonly OwnedMachine[] {
    return this.#inventory
      .by('VirtualMachine', 'uid', uid)
      .flatMap((object) => ownedMachineFrom(object) ?? []);
  }

  /** Returns all machines with vmwright's ownership labels. */
  machines(): readonly OwnedMachine[] {
    return this.#inventory.list('VirtualMachine').flatMap((object) => ownedMachineFrom(object) ?? []);
  }

  /** Yields the ESXi host of each machine. */
  *hosts(): Generator<Ref, void, undefined> {
    for (const { properties } of this.#inventory.list('VirtualMachine'))
      if (properties['runtime.host'] !== undefined) yield properties['runtime.host'];
  }

  /** Returns the direct child folder with this name. */
  child(name: string): Ref<'Folder'> | undefined {
    return this.#inventory.by('Folder', 'child', childKey(this.ref, name))[0]?.ref;
  }

  [Symbol.dispose](): void {
    this.#inventory[Symbol.dispose]();
  }
}

function ownedMachineFrom(object: ManagedObject): OwnedMachine | undefined {
  if (!isMachine(object)) return undefined;
  const ownership = ownershipOf(object);
  return ownership && { ref: object.ref, ownership, properties: object.properties };
}

function isMachine(object: ManagedObject): object is ManagedObject & TypedManagedObject<'VirtualMachine'> {
  return object.ref.type === 'VirtualMachine';
}

function uidOf(object: ManagedObject): string | undefined {
  return ownedMachineFrom(object)?.ownership.uid;
}

function childOf({ ref, properties: { parent, name } }: ManagedObject): string | undefined {
  if (ref.type !== 'Folder' || !isRef(parent, 'Folder') || typeof name !== 'string') return undefined;
  return childKey(parent, name);
}

function childKey({ value }: Ref, name: string): string {
  return `${value}/${name}`;
}
