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
import { type Marks, marksIn } from './marks.ts';

const MACHINE = [
  ...(['name', 'parent', 'config.template'] as const),
  ...(['config.instanceUuid', 'config.extraConfig', 'runtime.powerState'] as const),
  ...(['runtime.connectionState', 'runtime.host', 'guest.ipAddress'] as const),
  ...(['config.hardware.numCPU', 'config.hardware.memoryMB'] as const),
  ...(['config.cpuHotAddEnabled', 'config.memoryHotAddEnabled', 'config.hotPlugMemoryLimit'] as const),
];

/** A machine that carries a mark of ours. */
export interface Marked {
  readonly ref: Ref<'VirtualMachine'>;
  readonly marks: Marks;
  readonly properties: TypedManagedObject<'VirtualMachine'>['properties'];
}

export interface RootOptions {
  readonly world: Pick<World, 'monotonic'>;
  readonly vcenter: VcenterClient;
  readonly datacenter: Datacenter;
  readonly folder: Ref<'Folder'>;
  /** Of the vCenter itself, whatever it is called. */
  readonly vcenterId: string;
  /** Told of the group (`namespace/name`) of each machine that changes. */
  readonly wake: (group: string) => void;
}

/** A folder of vCenter in which groups have theirs, with all machines in it, as vCenter tells of them. */
export class Root implements Disposable {
  readonly datacenter: Datacenter;
  readonly folder: Ref<'Folder'>;
  readonly vcenterId: string;
  readonly #inventory: Inventory;
  readonly #world: Pick<World, 'monotonic'>;
  #lastLiveAt: number;

  constructor({ world, vcenter, datacenter, folder, vcenterId, wake }: RootOptions) {
    this.datacenter = datacenter;
    this.folder = folder;
    this.vcenterId = vcenterId;
    this.#world = world;
    this.#lastLiveAt = world.monotonic();
    this.#inventory = vcenter.inventory({
      container: folder,
      properties: { VirtualMachine: MACHINE, Folder: ['name', 'parent'] },
      indexes: { uid: uidOf, child: childOf },
    });
    this.#inventory.onChange((change) => {
      const objects = change.kind === 'changed' ? [change.object, change.before] : [change.object];
      const groups = objects.flatMap((object) => markedFrom(object)?.marks ?? []);
      for (const group of new Set(groups.map(({ namespace, name }) => `${namespace}/${name}`))) wake(group);
    });
  }

  /** Once all is known. */
  synced(signal: AbortSignal): Promise<void> {
    return this.#inventory.synced(signal);
  }

  /** For how long it has not been known what vCenter has. */
  get blindMs(): number {
    const now = this.#world.monotonic();
    if (this.#inventory.isLive) this.#lastLiveAt = now;
    return now - this.#lastLiveAt;
  }

  get isLive(): boolean {
    return this.#inventory.isLive;
  }

  machinesOf(uid: string): readonly Marked[] {
    return this.#inventory.by('VirtualMachine', 'uid', uid).flatMap((object) => markedFrom(object) ?? []);
  }

  machines(): readonly Marked[] {
    return this.#inventory.list('VirtualMachine').flatMap((object) => markedFrom(object) ?? []);
  }

  /** Those that its machines are on. */
  *hosts(): Generator<Ref, void, undefined> {
    for (const { properties } of this.#inventory.list('VirtualMachine'))
      if (properties['runtime.host'] !== undefined) yield properties['runtime.host'];
  }

  /** The folder of this name right in the root. */
  child(name: string): Ref<'Folder'> | undefined {
    return this.#inventory.by('Folder', 'child', childKey(this.folder, name))[0]?.ref;
  }

  [Symbol.dispose](): void {
    this.#inventory[Symbol.dispose]();
  }
}

function markedFrom(object: ManagedObject): Marked | undefined {
  if (!isMachine(object)) return undefined;
  const marks = marksIn(object);
  return marks && { ref: object.ref, marks, properties: object.properties };
}

function isMachine(object: ManagedObject): object is ManagedObject & TypedManagedObject<'VirtualMachine'> {
  return object.ref.type === 'VirtualMachine';
}

function uidOf(object: ManagedObject): string | undefined {
  return markedFrom(object)?.marks.uid;
}

function childOf({ ref, properties: { parent, name } }: ManagedObject): string | undefined {
  if (ref.type !== 'Folder' || !isRef(parent, 'Folder') || typeof name !== 'string') return undefined;
  return childKey(parent, name);
}

function childKey({ value }: Ref, name: string): string {
  return `${value}/${name}`;
}
