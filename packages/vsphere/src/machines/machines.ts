import type { Calls, ChangeOptions } from '../calls/calls.ts';
import { UnreadableAnswerError } from '../errors.ts';
import { FaultError, faultOf, nameOf } from '../faults.ts';
import type { PropertyWatcherOptions } from '../feed/feed.ts';
import { isRef, type Ref } from '../properties/properties.ts';
import { type CloneOptions, cloneSpec, configSpec, type MachineConfig } from './specs.ts';
import { until } from './until.ts';

export type TaskRef = Ref<'Task'>;

export interface ShutDownOptions extends ChangeOptions {
  /** How long the guest is given before it is powered off hard. */
  readonly patienceMs: number;
}

/** What is wrong with a soft shutdown that a hard one helps against. */
const NOT_SOFTLY: ReadonlySet<string> = new Set(['TOOLS_UNAVAILABLE', 'NOT_SUPPORTED', 'INVALID_STATE']);

/**
 * What is done to machines. Each starts a task and gives its reference, for `TaskFollower`.
 *
 * Errors: those of `Calls.change`. After one with `effectUnknown` the machine is to be looked for before it is tried
 * again: by its instance UUID, say.
 */
export class Machines {
  readonly #calls: Calls;
  readonly #feeding: PropertyWatcherOptions;

  constructor(calls: Calls, feeding: PropertyWatcherOptions) {
    this.#calls = calls;
    this.#feeding = feeding;
  }

  async clone(clone: CloneOptions, options: ChangeOptions = {}): Promise<TaskRef> {
    const { name, template, folder } = clone;
    const what = options.what ?? `cloning '${name}' from ${nameOf(template)}`;
    const args = { folder, name, spec: cloneSpec(clone) };
    return taskIn(what, await this.#calls.change('CloneVM_Task', () => template, args, { ...options, what }));
  }

  async reconfigure(
    vm: Ref<'VirtualMachine'>,
    config: MachineConfig,
    options: ChangeOptions = {},
  ): Promise<TaskRef> {
    const what = options.what ?? `reconfiguring ${nameOf(vm)}`;
    const args = { spec: configSpec(config) };
    return taskIn(what, await this.#calls.change('ReconfigVM_Task', () => vm, args, { ...options, what }));
  }

  /** A snapshot without memory, as linked clones build on. */
  async snapshot(vm: Ref<'VirtualMachine'>, name: string, options: ChangeOptions = {}): Promise<TaskRef> {
    const what = options.what ?? `taking the snapshot '${name}' of ${nameOf(vm)}`;
    const args = { name, memory: false, quiesce: false };
    return taskIn(
      what,
      await this.#calls.change('CreateSnapshot_Task', () => vm, args, { ...options, what }),
    );
  }

  async powerOn(vm: Ref<'VirtualMachine'>, options: ChangeOptions = {}): Promise<TaskRef> {
    const what = options.what ?? `powering on ${nameOf(vm)}`;
    return taskIn(what, await this.#calls.change('PowerOnVM_Task', () => vm, {}, { ...options, what }));
  }

  /** Hard: as by the plug. */
  async powerOff(vm: Ref<'VirtualMachine'>, options: ChangeOptions = {}): Promise<TaskRef> {
    const what = options.what ?? `powering off ${nameOf(vm)}`;
    return taskIn(what, await this.#calls.change('PowerOffVM_Task', () => vm, {}, { ...options, what }));
  }

  /** Asks the guest to shut itself down, and does not wait for it. */
  async askToShutDown(vm: Ref<'VirtualMachine'>, options: ChangeOptions = {}): Promise<void> {
    const what = options.what ?? `shutting down ${nameOf(vm)}`;
    await this.#calls.change('ShutdownGuest', () => vm, {}, { ...options, what });
  }

  /**
   * Lets the guest shut itself down, and powers it off hard where it cannot or does not in time.
   * @returns the task of the hard one; none where the machine is off
   */
  async shutDown(
    vm: Ref<'VirtualMachine'>,
    { patienceMs, ...options }: ShutDownOptions,
  ): Promise<TaskRef | undefined> {
    try {
      await this.askToShutDown(vm, options);
    } catch (error) {
      if (!(error instanceof FaultError)) throw error;
      const { existingState } = faultOf(error, 'InvalidPowerState') ?? {};
      if (existingState === 'suspended') return this.powerOff(vm, options); // no guest is there to ask
      if (error.code === 'INVALID_POWER_STATE') return undefined; // it is off
      if (!NOT_SOFTLY.has(error.code)) throw error;
      return this.powerOff(vm, options);
    }
    const { signal } = options;
    const isOff = (state: unknown) => state === 'poweredOff';
    const wait = { ...this.#feeding, signal, timeoutMs: patienceMs };
    if (await until(vm, 'runtime.powerState', isOff, wait)) return undefined;
    return this.powerOff(vm, options);
  }

  /**
   * Removes a folder of machines. Machines in it leave the inventory, and their files stay on the datastores; one that is
   * powered on makes the task fail. vCenter cannot remove a folder only if it is empty.
   */
  async unregisterFolder(folder: Ref<'Folder'>, options: ChangeOptions = {}): Promise<TaskRef> {
    const what = options.what ?? `removing ${nameOf(folder)}`;
    const call = { ...options, what };
    return taskIn(what, await this.#calls.change('UnregisterAndDestroy_Task', () => folder, {}, call));
  }

  /** A machine, which must be off; or a folder, with all machines in it. */
  async destroy(what: Ref, options: ChangeOptions = {}): Promise<TaskRef> {
    const said = options.what ?? `destroying ${nameOf(what)}`;
    return taskIn(said, await this.#calls.change('Destroy_Task', () => what, {}, { ...options, what: said }));
  }

  /** @throws FaultError `DUPLICATE_NAME` where there is one; `faultOf(error, 'DuplicateName')` has its reference */
  async createFolder(
    parent: Ref<'Folder'>,
    name: string,
    options: ChangeOptions = {},
  ): Promise<Ref<'Folder'>> {
    const what = options.what ?? `creating the folder '${name}' in ${nameOf(parent)}`;
    const made = await this.#calls.change('CreateFolder', () => parent, { name }, { ...options, what });
    if (isRef(made, 'Folder')) return made;
    throw new UnreadableAnswerError(`${what}: the answer is no folder`, { effectUnknown: true });
  }
}

function taskIn(what: string, ref: Ref): TaskRef {
  if (isRef(ref, 'Task')) return ref;
  throw new UnreadableAnswerError(`${what}: the answer is no task`, { effectUnknown: true });
}
