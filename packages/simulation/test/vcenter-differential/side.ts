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
  /** The sequence's own, since all share a vCenter. */
  readonly prefix: string;
}

/** What an operation has come to, in a form that is the same on both. */
export type Answer = { readonly ok: unknown } | { readonly refused: unknown };

const MACHINE = [
  ...(['name', 'parent', 'config.instanceUuid', 'config.template', 'config.extraConfig'] as const),
  ...(['runtime.powerState', 'config.hardware.numCPU', 'config.hardware.memoryMB'] as const),
];
const FOLDER = ['name', 'parent'] as const;
const ATTRIBUTE = 'vmwright.dev/owner';
/** What a sequence has that is not said of a machine: what the simulator puts there itself. */
const OURS = 'vmwright.';
const NEVER = '00000000-0000-4000-8000-00000000dead';

/** One of the two vCenters, as a sequence sees it. */
export class Side implements AsyncDisposable {
  readonly #vcenter: VcenterClient;
  readonly #intruder: VcenterClient;
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
    this.#intruder = new VcenterClient({
      ...options,
      world,
      credentials: () => ({ username, password: `not-${password}` }),
    });
  }

  /** Makes the sequence's own folder, and keeps what is in it in mind from then on. */
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

  async perform(operation: Operation): Promise<Answer> {
    try {
      return { ok: this.#shared(await this.#act(operation)) };
    } catch (error) {
      if (!(error instanceof VsphereError)) throw error;
      const { name, code, retryable, effectUnknown } = error;
      const fault =
        error instanceof FaultError ? { type: bare(error.type), detail: error.detail } : undefined;
      const message = fault === undefined ? error.message : undefined;
      return { refused: this.#shared({ name, code, retryable, effectUnknown, message, fault }) };
    }
  }

  /** All that is there: as it is listed, and as it is known from what was told of changes. */
  async left(): Promise<{ readonly listed: unknown; readonly told: unknown }> {
    const [container] = this.#folders;
    const inventory = this.#inventory;
    if (container === undefined || inventory === undefined) throw new Error('the sequence has not begun');
    // Changes are told in order: when this one was, all were.
    const last = await this.#vcenter.machines.createFolder(container, 'last');
    const isTold = () => inventory.get(last) !== undefined;
    if (!isTold())
      await new Promise<void>((resolve) => {
        const stop = inventory.onChange(() => {
          if (!isTold()) return;
          stop();
          resolve();
        });
      });
    const machines = await this.#vcenter.list('VirtualMachine', MACHINE, { container });
    const folders = await this.#vcenter.list('Folder', FOLDER, { container });
    return {
      listed: this.#shared(sorted([...machines, ...folders])),
      told: this.#shared(sorted([...inventory.list('VirtualMachine'), ...inventory.list('Folder')])),
    };
  }

  /** Leaves nothing behind, and does not care how. */
  async end(): Promise<void> {
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
    await this.#intruder.stop();
  }

  async #act(operation: Operation): Promise<unknown> {
    const { machines, lookup, attributes } = this.#vcenter;
    const datacenter = this.#datacenter;
    if (datacenter === undefined) throw new Error('the sequence has not begun');
    switch (operation.do) {
      case 'createFolder': {
        const made = await machines.createFolder(this.#folder(operation.in), operation.name);
        this.#folders.push(made);
        return made;
      }
      case 'clone':
        return this.#clone(operation, datacenter);
      case 'reconfigure': {
        const vm = this.#machine(operation.which);
        const { config } = operation;
        // The simulator gives a running machine whatever size is wanted, and vCenter does not.
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
        return [await lookup.byInstanceUuid(uuid), await lookup.byInstanceUuid(NEVER)];
      }
      case 'destroyFolder':
        return this.#destroyFolder(this.#folder(operation.which));
      case 'readFolder': {
        const { childEntity, ...read } = await this.#vcenter.read(this.#folder(operation.which), [
          'name',
          'parent',
          'childEntity',
        ]);
        return { ...read, children: childEntity?.map((each) => this.#named(each)).sort() };
      }
      case 'mark': {
        const folder = this.#folder(operation.which);
        // Of one that is not there the simulator answers nothing, and then nothing about attributes any more.
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
      case 'intrude':
        return this.#intruder.read(datacenter.ref, ['name']);
    }
  }

  async #clone(operation: Operation & { readonly do: 'clone' }, datacenter: Datacenter): Promise<unknown> {
    const { machines, lookup } = this.#vcenter;
    const { from, name, pool, config, uuid, powerOn } = operation;
    const template =
      from === 'template'
        ? await lookup.template(datacenter, 'template-1')
        : this.#machine(from === 'machine' ? 0 : 'none');
    const made = await this.#follow(
      machines.clone({
        ...{ name, template, folder: this.#folder(operation.in), powerOn },
        ...(pool && { resourcePool: await lookup.resourcePool(datacenter) }),
        ...config,
        // The simulator does not copy the marks of a machine that is cloned, and vCenter does.
        ...(from === 'machine' && { extraConfig: COPIED }),
        ...(uuid !== undefined && {
          instanceUuid: `5f0c2c1e-7f4e-4a8e-9d0e-${String(uuid).padStart(12, '0')}`,
        }),
      }),
    );
    if (isRef(made, 'VirtualMachine')) this.#machines.push(made);
    return made;
  }

  /** What is in a folder the simulator leaves behind without a parent; vCenter destroys it too. */
  async #destroyFolder(folder: Ref<'Folder'>): Promise<unknown> {
    if (folder === this.#folders[0]) return 'its own';
    const { childEntity } = await this.#vcenter.read(folder, ['childEntity']);
    if ((childEntity?.length ?? 0) > 0) return 'not compared';
    return this.#follow(this.#vcenter.machines.destroy(folder));
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
    return found ?? { type: 'VirtualMachine', value: 'vm-nobody' };
  }

  #folder(which: Which): Ref<'Folder'> {
    if (which === 'none') return { type: 'Folder', value: 'group-nobody' };
    return this.#folders.at(-1 - which) ?? this.#folders[0] ?? { type: 'Folder', value: 'group-nobody' };
  }

  /** Without what is by nature different on two vCenters: objects by when they came up, no tasks' ids, no new UUIDs. */
  #shared(value: unknown): unknown {
    if (value === undefined) return undefined;
    return JSON.parse(
      JSON.stringify(value, (name, part) => {
        if (name === 'config.instanceUuid' && !String(part).startsWith('5f0c2c1e')) return 'a UUID';
        if (name === 'config.extraConfig') return marksIn(part);
        return isAnyRef(part) ? this.#named(part) : part;
      }),
    );
  }

  #named({ type, value }: Ref): string {
    const all: readonly Ref[] = type === 'Folder' ? this.#folders : this.#machines;
    const index = all.findIndex((each) => each.value === value);
    if (value.endsWith('-nobody')) return `${type} of nobody`;
    return index === -1 ? `a ${type}` : `${type} ${index}`;
  }
}

const COPIED: NonNullable<Config['extraConfig']> = { 'vmwright.uid': 'copied', 'vmwright.slot': '9' };

/** Some faults are named by the element that carries them. */
function bare(type: string): string {
  return type.replace(/Fault$/, '');
}

function isAnyRef(value: unknown): value is Ref {
  if (typeof value !== 'object' || value === null) return false;
  return Object.keys(value).sort().join() === 'type,value';
}

function marksIn(options: unknown): unknown {
  const all = Array.isArray(options) ? options : [];
  return (
    all
      // The simulator keeps an empty one that was not there before; vCenter has no empty ones.
      .filter(({ key, value }) => key.startsWith(OURS) && value !== '')
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
