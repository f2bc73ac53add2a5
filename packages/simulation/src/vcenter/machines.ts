import { same } from '../apiserver/json.ts';
import type { Entity } from './entity.ts';
import { type Cause, type Machine, type MachineChange, PROPERTIES } from './machine.ts';
import type { Registry } from './registry.ts';

export type Draft = Omit<Machine, 'id'>;

/** All virtual machines and templates of a vCenter. */
export class Machines {
  readonly #registry: Registry;
  readonly #machines = new Map<string, Machine>();
  readonly #listeners: ((change: MachineChange) => void)[] = [];

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  get(id: string): Machine | undefined {
    return this.#machines.get(id);
  }

  all(): Iterable<Machine> {
    return this.#machines.values();
  }

  add(draft: Draft, cause: Cause, task?: string): Machine {
    const registry = this.#registry;
    return registry.batch(() => {
      const machine = { ...draft, id: registry.newId('vm') };
      const parent = registry.get({ type: 'Folder', value: draft.folder });
      registry.add({ type: 'VirtualMachine', value: machine.id }, machine.name, parent);
      this.#put(machine);
      this.#notify({ before: undefined, after: machine, cause, task });
      return machine;
    });
  }

  /** Changes a machine. @returns the changed machine, or undefined if it does not exist */
  change(id: string, changes: Partial<Draft>, cause: Cause, task?: string): Machine | undefined {
    const before = this.#machines.get(id);
    if (before === undefined) return undefined;
    const after = { ...before, ...changes };
    if (same(before, after)) return before;
    return this.#registry.batch(() => {
      this.#put(after);
      this.#notify({ before, after, cause, task });
      return after;
    });
  }

  /** Moves a machine to another folder, as a user in the vSphere UI would. */
  move(id: string, folder: Entity): void {
    const before = this.#machines.get(id);
    const entity = this.#registry.get({ type: 'VirtualMachine', value: id });
    if (before === undefined || entity === undefined) return;
    this.#registry.batch(() => {
      this.#registry.remove(entity); // views of the old folder report that the machine left
      this.#registry.add(entity.ref, before.name, folder);
      const after = { ...before, folder: folder.ref.value };
      this.#put(after);
      this.#notify({ before, after, cause: 'somebody', task: undefined });
    });
  }

  /** Removes a machine. @param isUnregistered whether its files remain */
  remove(id: string, cause: Cause, task?: string, isUnregistered = false): void {
    const before = this.#machines.get(id);
    const entity = this.#registry.get({ type: 'VirtualMachine', value: id });
    if (before === undefined || entity === undefined) return;
    this.#registry.batch(() => {
      this.#machines.delete(id);
      this.#registry.remove(entity);
      this.#notify({ before, after: undefined, cause, task, isUnregistered });
    });
  }

  /** Registers a listener that is called synchronously for each change. */
  listen(listener: (change: MachineChange) => void): void {
    this.#listeners.push(listener);
  }

  #put(machine: Machine): void {
    this.#machines.set(machine.id, machine);
    const entity = this.#registry.get({ type: 'VirtualMachine', value: machine.id });
    if (entity === undefined) return;
    entity.name = machine.name;
    for (const path in PROPERTIES) this.#registry.set(entity, path, PROPERTIES[path]?.(machine));
  }

  #notify(change: MachineChange): void {
    for (const listener of this.#listeners) listener(change);
  }
}
