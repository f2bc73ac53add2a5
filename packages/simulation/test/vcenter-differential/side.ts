import {
  customValueOf,
  type Datacenter,
  FaultError,
  type Inventory,
  isRef,
  type Ref,
  type TaskRef,
  type TypedManagedObject,
  VcenterClient,
  type VcenterClientOptions,
  VsphereError,
  type VsphereWorld,
} from '@vmwright/vsphere';
import { Lossy } from './lossy.ts';
import type { Config, Operation, Which } from './operations.ts';

export interface SideOptions extends Omit<VcenterClientOptions, 'world' | 'credentials'> {
  readonly world: VsphereWorld;
  readonly username: string;
  readonly password: string;
  /** Name of the sequence's folder. Each sequence has its own folder, because all sequences share a vCenter. */
  readonly prefix: string;
}

/** Result of an operation in a form that is comparable between vcsim and the model. */
export type Result = { readonly ok: unknown } | { readonly error: unknown };

const MACHINE = [
  ...(['name', 'parent', 'config.instanceUuid', 'config.template', 'config.extraConfig'] as const),
  ...(['runtime.powerState', 'config.hardware.numCPU', 'config.hardware.memoryMB'] as const),
];
const FOLDER = ['name', 'parent'] as const;
const ATTRIBUTE = 'vmwright.dev/owner';
/** Prefix of the extraConfig keys that are compared. vcsim adds its own keys without this prefix. */
const COMPARED_KEYS = 'vmwright.';
const UNKNOWN_UUID = '00000000-0000-4000-8000-00000000dead';

/** Runs the operations of a sequence on vcsim or on the model. */
export class Side implements AsyncDisposable {
  readonly #vcenter: VcenterClient;
  readonly #wrongPasswordClient: VcenterClient;
  readonly #lossy: Lossy;
  readonly #prefix: string;
  readonly #machines: Ref<'VirtualMachine'>[] = [];
  readonly #folders: Ref<'Folder'>[] = [];
  #datacenter: Datacenter | undefined;
  #inventory: Inventory | undefined;

  constructor({ world, username, password, prefix, ...options }: SideOptions) {
    this.#lossy = new Lossy(world);
    this.#prefix = prefix;
    const credentials = () => ({ username, password });
    this.#vcenter = new VcenterClient({ ...options, world: this.#lossy.world, credentials });
    this.#wrongPasswordClient = new VcenterClient({
      ...options,
      world,
      credentials: () => ({ username, password: `not-${password}` }),
    });
  }

  /** Creates the folder of the sequence and starts to watch its inventory. */
  async begin(): Promise<void> {
    this.#datacenter = await this.#vcenter.lookup.datacenter();
    const folder = await this.#vcenter.machines.createFolder(this.#datacenter.vmFolder, this.#prefix);
    this.#folders.push(folder);
    this.#inventory = this.#vcenter.inventory({
      container: folder,
      properties: { VirtualMachine: MACHINE, Folder: FOLDER },
    });
    await this.#inventory.synced();
  }

  async perform(operation: Operation): Promise<Result> {
    try {
      return { ok: this.#normalized(await this.#act(operation)) };
    } catch (error) {
      if (!(error instanceof VsphereError)) throw error;
      const { name, code, retryable, effectUnknown } = error;
      const fault =
        error instanceof FaultError ? { type: bare(error.type), detail: error.detail } : undefined;
      const message = fault === undefined ? error.message : undefined;
      return { error: this.#normalized({ name, code, retryable, effectUnknown, message, fault }) };
    }
  }

  /** Returns the inventory of the sequence: as listed, and as watched through change notifications. */
  async objects(): Promise<{ readonly listed: unknown; readonly watched: unknown }> {
    const [container] = this.#folders;
    const inventory = this.#inventory;
    if (container === undefined || inventory === undefined) throw new Error('call begin() first');
    // Notifications arrive in order, so once this folder is reported, all earlier changes have been reported.
    const last = await this.#vcenter.machines.createFolder(container, 'last');
    const isReported = () => inventory.get(last) !== undefined;
    if (!isReported())
      await new Promise<void>((resolve) => {
        const stop = inventory.onChange(() => {
          if (!isReported()) return;
          stop();
          resolve();
        });
      });
    const machines = await this.#vcenter.list('VirtualMachine', MACHINE, { container });
    const folders = await this.#vcenter.list('Folder', FOLDER, { container });
    return {
      listed: this.#normalized(sorted([...machines, ...folders])),
      watched: this.#normalized(sorted([...inventory.list('VirtualMachine'), ...inventory.list('Folder')])),
    };
  }

  /** Removes all objects of the sequence. */
  async cleanUp(): Promise<void> {
    const [container] = this.#folders;
    if (container === undefined) return;
    for (const { ref } of await this.#vcenter.list('VirtualMachine', ['name'], { container })) {
      await this.#follow(this.#vcenter.machines.powerOff(ref)).catch(() => undefined);
      await this.#follow(this.#vcenter.machines.destroy(ref));
    }
    await this.#follow(this.#vcenter.machines.destroy(container));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#vcenter.stop();
    await this.#wrongPasswordClient.stop();
  }

  async #act(operation: Operation): Promise<unknown> {
    const { machines, lookup, attributes } = this.#vcenter;
    const datacenter = this.#datacenter;
    if (datacenter === undefined) throw new Error('call begin() first');
    switch (operation.do) {
      case 'createFolder': {
        const folder = await machines.createFolder(this.#folder(operation.in), operation.name);
        this.#folders.push(folder);
        return folder;
      }
      case 'clone':
        return this.#clone(operation, datacenter);
      case 'reconfigure': {
        const vm = this.#machine(operation.which);
        const { config } = operation;
        // vcsim accepts any size for a running machine, vCenter does not.
        if ((config.cpus ?? config.memoryMb) !== undefined && (await this.#isOn(vm))) return 'not compared';
        return this.#follow(machines.reconfigure(vm, config));
      }
      case 'powerOn':
        return this.#follow(machines.powerOn(this.#machine(operation.which)));
      case 'powerOff':
        return this.#follow(machines.powerOff(this.#machine(operation.which)));
      case 'shutDown': {
        const vm = this.#machine(operation.which);
        const task = await machines.shutDown(vm, { gracePeriodMs: 60_000 });
        return [task === undefined, await this.#vcenter.read(vm, ['runtime.powerState'])];
      }
      case 'destroy':
        return this.#follow(machines.destroy(this.#machine(operation.which)));
      case 'read':
        return this.#vcenter.read(this.#machine(operation.which), MACHINE);
      case 'find': {
        const vm = this.#machine(operation.which);
        const { 'config.instanceUuid': uuid = '' } = await this.#vcenter.read(vm, ['config.instanceUuid']);
        return [await lookup.byInstanceUuid(uuid), await lookup.byInstanceUuid(UNKNOWN_UUID)];
      }
      case 'destroyFolder':
        return this.#destroyFolder(this.#folder(operation.which));
      case 'renameFolder':
        return this.#renameFolder(this.#folder(operation.which), operation.name);
      case 'readFolder': {
        const { childEntity, ...read } = await this.#vcenter.read(this.#folder(operation.which), [
          'name',
          'parent',
          'childEntity',
        ]);
        return { ...read, children: childEntity?.map((each) => this.#named(each)).sort() };
      }
      case 'setAttribute': {
        const folder = this.#folder(operation.which);
        // This read fails if the folder is missing, so SetField is compared only for existing folders.
        await this.#vcenter.read(folder, ['name']);
        const key = await attributes.ensureKey(ATTRIBUTE);
        await attributes.set(folder, key, operation.value);
        const { customValue } = await this.#vcenter.read(folder, ['customValue']);
        return customValueOf(customValue, key);
      }
      case 'lookUp':
        return lookup.folder(datacenter, `/${datacenter.name}/vm/${this.#prefix}/${operation.path}`);
      case 'template': {
        const template = await lookup.template(datacenter, operation.name);
        return (await this.#vcenter.read(template, ['name', 'config.template'])) satisfies object;
      }
      case 'loseSession':
        this.#lossy.loseSession();
        return (await this.#vcenter.read(datacenter.ref, ['name'])).name;
      case 'loseUpdates':
        this.#lossy.loseUpdates();
        return undefined;
      case 'wrongPassword':
        return this.#wrongPasswordClient.read(datacenter.ref, ['name']);
    }
  }

  async #clone(operation: Operation & { readonly do: 'clone' }, datacenter: Datacenter): Promise<unknown> {
    const { machines, lookup } = this.#vcenter;
    const { from, name, pool, config, uuid, powerOn } = operation;
    const template =
      from === 'template'
        ? await lookup.template(datacenter, 'template-1')
        : this.#machine(from === 'machine' ? 0 : 'none');
    const clone = await this.#follow(
      machines.clone({
        name,
        template,
        folder: this.#folder(operation.in),
        powerOn,
        ...(pool && { resourcePool: await lookup.resourcePool(datacenter) }),
        ...config,
        // Sets the compared keys on the clone, because vcsim, unlike vCenter, does not copy the extraConfig of the
        // source machine.
        ...(from === 'machine' && { extraConfig: COPIED }),
        ...(uuid !== undefined && {
          instanceUuid: `5f0c2c1e-7f4e-4a8e-9d0e-${String(uuid).padStart(12, '0')}`,
        }),
      }),
    );
    if (isRef(clone, 'VirtualMachine')) this.#machines.push(clone);
    return clone;
  }

  /**
   * Destroys an empty folder. Only empty folders are compared, because vcsim orphans the contents of a folder, and
   * vCenter destroys them.
   */
  async #destroyFolder(folder: Ref<'Folder'>): Promise<unknown> {
    if (folder === this.#folders[0]) return 'the folder of the sequence';
    const { childEntity } = await this.#vcenter.read(folder, ['childEntity']);
    if ((childEntity?.length ?? 0) > 0) return 'not compared';
    return this.#follow(this.#vcenter.machines.destroy(folder));
  }

  /**
   * Renames a folder if the new name is free. A rename to a taken name is not compared, because vcsim fails with
   * InvalidArgument, and vCenter with DuplicateName.
   */
  async #renameFolder(folder: Ref<'Folder'>, name: string): Promise<unknown> {
    if (folder === this.#folders[0]) return 'the folder of the sequence';
    const { parent } = await this.#vcenter.read(folder, ['parent']);
    if (!isRef(parent, 'Folder')) return 'no parent';
    if ((await this.#vcenter.lookup.child(parent, name)) !== undefined) return 'not compared';
    return this.#follow(this.#vcenter.machines.renameFolder(folder, name));
  }

  async #isOn(vm: Ref<'VirtualMachine'>): Promise<boolean> {
    const { 'runtime.powerState': power } = await this.#vcenter.read(vm, ['runtime.powerState']);
    return power === 'poweredOn';
  }

  async #follow(task: Promise<TaskRef>): Promise<unknown> {
    return this.#vcenter.tasks.follow(await task);
  }

  #machine(which: Which): Ref<'VirtualMachine'> {
    const found = which === 'none' ? undefined : this.#machines.at(-1 - which);
    return found ?? { type: 'VirtualMachine', value: 'vm-missing' };
  }

  #folder(which: Which): Ref<'Folder'> {
    if (which === 'none') return { type: 'Folder', value: 'group-missing' };
    return this.#folders.at(-1 - which) ?? this.#folders[0] ?? { type: 'Folder', value: 'group-missing' };
  }

  /**
   * Replaces values that differ between two vCenters: object ids by their order of creation, and task ids and generated
   * UUIDs by constants.
   */
  #normalized(value: unknown): unknown {
    if (value === undefined) return undefined;
    return JSON.parse(
      JSON.stringify(value, (name, part) => {
        if (name === 'config.instanceUuid' && !String(part).startsWith('5f0c2c1e')) return 'a UUID';
        if (name === 'config.extraConfig') return comparedOptions(part);
        return isAnyRef(part) ? this.#named(part) : part;
      }),
    );
  }

  #named({ type, value }: Ref): string {
    const all: readonly Ref[] = type === 'Folder' ? this.#folders : this.#machines;
    const index = all.findIndex((each) => each.value === value);
    if (value.endsWith('-missing')) return `missing ${type}`;
    return index === -1 ? `a ${type}` : `${type} ${index}`;
  }
}

const COPIED: NonNullable<Config['extraConfig']> = { 'vmwright.uid': 'copied', 'vmwright.slot': '9' };

/** Strips the suffix `Fault`, because vcsim names some faults by their XML element, such as InvalidPowerStateFault. */
function bare(type: string): string {
  return type.replace(/Fault$/, '');
}

function isAnyRef(value: unknown): value is Ref {
  if (typeof value !== 'object' || value === null) return false;
  return Object.keys(value).sort().join() === 'type,value';
}

function comparedOptions(options: unknown): unknown {
  const all = Array.isArray(options) ? options : [];
  return (
    all
      // vcsim keeps an option that is set to the empty string; vCenter removes it.
      .filter(({ key, value }) => key.startsWith(COMPARED_KEYS) && value !== '')
      .map(({ key, value }) => `${key}=${value}`)
      .sort()
  );
}

function sorted(
  objects: readonly (TypedManagedObject<'VirtualMachine'> | TypedManagedObject<'Folder'>)[],
): readonly unknown[] {
  return [...objects].sort((a, b) => numberOf(a) - numberOf(b));
}

function numberOf({ ref: { value } }: { readonly ref: Ref }): number {
  return Number(value.replace(/\D/g, ''));
}
