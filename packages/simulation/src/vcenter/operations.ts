import type { Entity } from './entity.ts';
import type { VcenterEnvironment } from './environment.ts';
import {
  duplicateName,
  invalidArgument,
  invalidPowerState,
  managedObjectNotFound,
  taskInProgress,
  VimFault,
} from './fault.ts';
import type { Folders } from './folders.ts';
import type { Machine, Power } from './machine.ts';
import type { Machines } from './machines.ts';
import type { Registry } from './registry.ts';
import type { Fields } from './request.ts';
import type { Task, Tasks } from './tasks.ts';
import type { Ref } from './xml.ts';

export interface Parts {
  readonly registry: Registry;
  readonly machines: Machines;
  readonly folders: Folders;
  readonly tasks: Tasks;
  readonly environment: VcenterEnvironment;
  readonly hosts: readonly [string, ...string[]];
}

/**
 * Operations that run as tasks. A task starts immediately, and applies its change some time later, to the state at that
 * time.
 */
export class Operations {
  readonly #parts: Parts;
  #clones = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Clones a machine. The clone appears in the inventory, and is powered on if requested, before the task ends. */
  clone(source: Machine, folder: Entity, name: string, spec: Fields): Ref {
    const { tasks } = this.#parts;
    const task = tasks.begin('CloneVM', { type: 'VirtualMachine', value: source.id });
    const taken = folder.child(name);
    if (source.isTemplate && spec.inner('location').ref('pool') === undefined)
      tasks.fail(task, invalidArgument('spec.location.pool'));
    else if (taken !== undefined) tasks.fail(task, duplicateName(name, taken.ref));
    else this.#runLater(task, (lateFault) => this.#addClone(task, source, folder, name, spec, lateFault));
    return task.ref;
  }

  reconfigure({ id }: Machine, spec: Fields): Ref {
    return this.#runTask('ReconfigVM', id, (task, machine) => {
      const [cpus, memoryMb] = [spec.number('numCPUs'), spec.number('memoryMB')];
      const fault = this.#resizeFault(machine, cpus, memoryMb);
      if (fault !== undefined) return this.#parts.tasks.fail(task, fault);
      const changes = {
        ...(cpus !== undefined && { cpus }),
        ...(memoryMb !== undefined && { memoryMb }),
        extraConfig: withOptions(machine.extraConfig, spec),
      };
      this.#parts.machines.change(id, changes, 'request', task.ref.value);
      this.#parts.tasks.succeed(task);
    });
  }

  power({ id }: Machine, wanted: 'poweredOn' | 'poweredOff'): Ref {
    return this.#runTask(wanted === 'poweredOn' ? 'PowerOnVM' : 'PowerOffVM', id, (task, machine) => {
      const { machines, tasks } = this.#parts;
      if (machine.power === wanted) return tasks.fail(task, invalidPowerState(wanted, machine.power));
      machines.change(id, powered(machine, wanted), 'request', task.ref.value);
      tasks.succeed(task);
    });
  }

  /** Starts a guest shutdown. @throws VimFault if the machine is off or the guest has no VMware Tools */
  shutDown({ id, power }: Machine): void {
    const { environment, machines } = this.#parts;
    if (power !== 'poweredOn') throw invalidPowerState('poweredOn', power);
    const ms = environment.shutdownMs();
    if (ms === undefined) throw new VimFault('ToolsUnavailable');
    if (Number.isFinite(ms))
      environment.after(ms, () => {
        const machine = machines.get(id);
        if (machine?.power === 'poweredOn') machines.change(id, powered(machine, 'poweredOff'), 'request');
      });
  }

  destroyMachine({ id }: Machine): Ref {
    return this.#runTask('Destroy', id, (task, { power }) => {
      const { machines, tasks } = this.#parts;
      if (power === 'poweredOn') return tasks.fail(task, invalidPowerState('poweredOff', power));
      machines.remove(id, 'request', task.ref.value);
      tasks.succeed(task);
    });
  }

  /** Destroys a folder and everything in it, regardless of the power state of the machines. */
  destroyFolder(folder: Entity): Ref {
    const { tasks, registry } = this.#parts;
    const task = tasks.begin('Destroy', folder.ref);
    this.#runLater(task, () => {
      if (registry.get(folder.ref) === undefined) return tasks.fail(task, managedObjectNotFound(folder.ref));
      this.remove(folder, task);
      tasks.succeed(task);
    });
    return task.ref;
  }

  /** Destroys a folder and unregisters its machines, which must be powered off; their files remain. */
  unregisterFolder(folder: Entity): Ref {
    const { tasks, registry, machines } = this.#parts;
    const task = tasks.begin('Destroy', folder.ref);
    this.#runLater(task, () => {
      if (registry.get(folder.ref) === undefined) return tasks.fail(task, managedObjectNotFound(folder.ref));
      const isOn = [...folder.children].some(({ ref }) => machines.get(ref.value)?.power === 'poweredOn');
      if (isOn) return tasks.fail(task, new VimFault('InvalidState'));
      for (const { ref } of [...folder.children]) machines.remove(ref.value, 'request', task.ref.value, true);
      this.remove(folder, task);
      tasks.succeed(task);
    });
    return task.ref;
  }

  renameFolder(folder: Entity, name: string): Ref {
    const { tasks, registry, folders } = this.#parts;
    const task = tasks.begin('Rename', folder.ref);
    this.#runLater(task, () => {
      if (registry.get(folder.ref) === undefined) return tasks.fail(task, managedObjectNotFound(folder.ref));
      const taken = folder.parent?.child(name);
      if (taken !== undefined) return tasks.fail(task, duplicateName(name, taken.ref));
      folders.rename(folder, name, 'request');
      tasks.succeed(task);
    });
    return task.ref;
  }

  /** Removes a folder and everything in it. @param task undefined if a simulated third party removes the folder */
  remove(folder: Entity, task?: Task): void {
    const { machines, folders } = this.#parts;
    const cause = task === undefined ? 'somebody' : 'request';
    for (const child of [...folder.children]) {
      if (child.ref.type === 'Folder') this.remove(child, task);
      else machines.remove(child.ref.value, cause, task?.ref.value);
    }
    folders.remove(folder, cause);
  }

  #addClone(
    task: Task,
    source: Machine,
    folder: Entity,
    name: string,
    spec: Fields,
    lateFault?: VimFault,
  ): void {
    const { machines, tasks, environment } = this.#parts;
    const fault = this.#cloneFault(source, folder, name);
    if (fault !== undefined) {
      tasks.fail(task, fault);
      return;
    }
    const machine = machines.add(this.#cloned(source, folder, name, spec), 'request', task.ref.value);
    environment.note(`${name} is created as ${machine.id}`);
    const clone = { type: 'VirtualMachine', value: machine.id };
    if (!spec.flag('powerOn')) {
      tasks.succeed(task, clone);
      return;
    }
    tasks.lock(machine.id, task);
    environment.after(environment.taskMs('PowerOnVM'), () => {
      const found = machines.get(machine.id);
      if (found === undefined) tasks.fail(task, managedObjectNotFound(clone));
      else if (lateFault !== undefined) tasks.fail(task, lateFault);
      else {
        if (found.power !== 'poweredOn')
          machines.change(machine.id, powered(found, 'poweredOn'), 'request', task.ref.value);
        tasks.succeed(task, clone);
      }
    });
  }

  /** Returns a fault if the source, folder or name became unavailable after the clone was requested. */
  #cloneFault({ id }: Machine, folder: Entity, name: string): VimFault | undefined {
    const { registry, machines } = this.#parts;
    if (registry.get(folder.ref) === undefined) return managedObjectNotFound(folder.ref);
    if (machines.get(id) === undefined) return managedObjectNotFound({ type: 'VirtualMachine', value: id });
    const taken = folder.child(name);
    return taken && duplicateName(name, taken.ref);
  }

  #cloned(template: Machine, folder: Entity, name: string, spec: Fields): Omit<Machine, 'id'> {
    const { environment, hosts, machines } = this.#parts;
    const config = spec.inner('config');
    const wanted = config.text('instanceUuid');
    // Instance UUIDs are unique in a vCenter. If the requested UUID is in use, vCenter assigns a new one.
    const isTaken = [...machines.all()].some(({ instanceUuid }) => instanceUuid === wanted);
    this.#clones += 1;
    return {
      ...template,
      name,
      folder: folder.ref.value,
      instanceUuid: wanted === undefined || isTaken ? environment.uuid() : wanted,
      isTemplate: false,
      power: 'poweredOff',
      host: hosts[this.#clones % hosts.length] ?? hosts[0],
      cpus: config.number('numCPUs') ?? template.cpus,
      memoryMb: config.number('memoryMB') ?? template.memoryMb,
      extraConfig: withOptions(template.extraConfig, config),
      ip: undefined,
    };
  }

  /** Runs a task on a machine. The task fails if another task is running on the machine. */
  #runTask(what: string, id: string, act: (task: Task, machine: Machine) => void): Ref {
    const { tasks, machines } = this.#parts;
    const ref = { type: 'VirtualMachine', value: id };
    const task = tasks.begin(what, ref);
    const other = tasks.lock(id, task);
    if (other !== undefined) tasks.fail(task, taskInProgress(other.ref));
    else
      this.#runLater(task, () => {
        const machine = machines.get(id);
        if (machine === undefined) tasks.fail(task, managedObjectNotFound(ref));
        else act(task, machine);
      });
    return task.ref;
  }

  #runLater(task: Task, act: (lateFault?: VimFault) => void): void {
    const { environment, tasks } = this.#parts;
    const failing = environment.taskFault(task.what);
    environment.after(environment.taskMs(task.what), () => {
      if (failing !== undefined && !failing.isLate) tasks.fail(task, failing.fault);
      else act(failing?.fault);
    });
  }

  /**
   * Returns a fault if the power state forbids the resize. A running machine can only grow, and only with hot-add
   * enabled.
   */
  #resizeFault(machine: Machine, cpus = machine.cpus, memoryMb = machine.memoryMb): VimFault | undefined {
    if (machine.power === 'poweredOff') return undefined;
    const canCpus = cpus === machine.cpus || (cpus > machine.cpus && machine.canAddCpus);
    const canMemory = memoryMb === machine.memoryMb || (memoryMb > machine.memoryMb && machine.canAddMemory);
    return canCpus && canMemory ? undefined : invalidPowerState('poweredOff', machine.power);
  }
}

/** Returns the fields that a machine has in the given power state: the state itself and the IP address. */
export function powered({ id }: Machine, power: Power): Partial<Machine> {
  return { power, ip: power === 'poweredOn' ? `10.0.0.${id.replace(/\D/g, '')}` : undefined };
}

function withOptions(
  before: Readonly<Record<string, string>>,
  spec: Fields,
): Readonly<Record<string, string>> {
  const options = spec.each('extraConfig');
  if (options.length === 0) return before;
  const after: Record<string, string> = { ...before };
  for (const option of options) {
    const [key, value] = [option.text('key') ?? '', option.text('value') ?? ''];
    if (value === '') delete after[key];
    else after[key] = value;
  }
  return after;
}
