import { InvalidResponseError } from '../errors.ts';
import { FaultError, faultOf, nameOf } from '../faults.ts';
import { isRef, type Ref } from '../properties/properties.ts';
import type { PropertyWatcherOptions } from '../property-watcher/property-watcher.ts';
import type { ChangeOptions, SessionClient } from '../session/session-client.ts';
import { type CloneOptions, cloneSpec, configSpec, type MachineConfig } from './specs.ts';
import { waitForProperty } from './wait-for-property.ts';

export type TaskRef = Ref<'Task'>;

export interface ShutDownOptions extends ChangeOptions {
  /** Time for the guest to shut down before the machine is powered off, in milliseconds. */
  readonly gracePeriodMs: number;
}

/** Faults of a guest shutdown after which the machine is powered off instead. */
const NO_GUEST_SHUTDOWN: ReadonlySet<string> = new Set([
  'TOOLS_UNAVAILABLE',
  'NOT_SUPPORTED',
  'INVALID_STATE',
]);

/**
 * Operations on virtual machines and folders. Most methods start a task and return its reference; `TaskFollower` waits
 * for tasks.
 *
 * Errors: those of `SessionClient.change`. After an error with `effectUnknown`, check the state in vCenter before
 * trying again: look the machine up by its instance UUID, for example.
 */
export class Machines {
  readonly #calls: SessionClient;
  readonly #watcherOptions: PropertyWatcherOptions;

  constructor(calls: SessionClient, watcherOptions: PropertyWatcherOptions) {
    this.#calls = calls;
    this.#watcherOptions = watcherOptions;
  }

  async clone(clone: CloneOptions, options: ChangeOptions = {}): Promise<TaskRef> {
    const { name, template, folder } = clone;
    const description = options.description ?? `cloning '${name}' from ${nameOf(template)}`;
    const args = { folder, name, spec: cloneSpec(clone) };
    return assertTask(
      description,
      await this.#calls.change('CloneVM_Task', () => template, args, { ...options, description }),
    );
  }

  async reconfigure(
    vm: Ref<'VirtualMachine'>,
    config: MachineConfig,
    options: ChangeOptions = {},
  ): Promise<TaskRef> {
    const description = options.description ?? `reconfiguring ${nameOf(vm)}`;
    const args = { spec: configSpec(config) };
    return assertTask(
      description,
      await this.#calls.change('ReconfigVM_Task', () => vm, args, { ...options, description }),
    );
  }

  /** Takes a snapshot without memory, for linked clones. */
  async snapshot(vm: Ref<'VirtualMachine'>, name: string, options: ChangeOptions = {}): Promise<TaskRef> {
    const description = options.description ?? `taking snapshot '${name}' of ${nameOf(vm)}`;
    const args = { name, memory: false, quiesce: false };
    return assertTask(
      description,
      await this.#calls.change('CreateSnapshot_Task', () => vm, args, { ...options, description }),
    );
  }

  async powerOn(vm: Ref<'VirtualMachine'>, options: ChangeOptions = {}): Promise<TaskRef> {
    const description = options.description ?? `powering on ${nameOf(vm)}`;
    return assertTask(
      description,
      await this.#calls.change('PowerOnVM_Task', () => vm, {}, { ...options, description }),
    );
  }

  /** Hard power-off, without guest shutdown. */
  async powerOff(vm: Ref<'VirtualMachine'>, options: ChangeOptions = {}): Promise<TaskRef> {
    const description = options.description ?? `powering off ${nameOf(vm)}`;
    return assertTask(
      description,
      await this.#calls.change('PowerOffVM_Task', () => vm, {}, { ...options, description }),
    );
  }

  /** Asks the guest to shut down. Does not wait for the shutdown. */
  async shutdownGuest(vm: Ref<'VirtualMachine'>, options: ChangeOptions = {}): Promise<void> {
    const description = options.description ?? `shutting down ${nameOf(vm)}`;
    await this.#calls.change('ShutdownGuest', () => vm, {}, { ...options, description });
  }

  /**
   * Shuts the guest down. Powers the machine off when the guest cannot shut down or exceeds the grace period.
   * @returns the power-off task; undefined when the guest has shut down, or the machine was already off
   */
  async shutDown(
    vm: Ref<'VirtualMachine'>,
    { gracePeriodMs, ...options }: ShutDownOptions,
  ): Promise<TaskRef | undefined> {
    try {
      await this.shutdownGuest(vm, options);
    } catch (error) {
      if (!(error instanceof FaultError)) throw error;
      const { existingState } = faultOf(error, 'InvalidPowerState') ?? {};
      if (existingState === 'suspended') return this.powerOff(vm, options); // no guest is running
      if (error.code === 'INVALID_POWER_STATE') return undefined; // the machine is off
      if (!NO_GUEST_SHUTDOWN.has(error.code)) throw error;
      return this.powerOff(vm, options);
    }
    const { signal } = options;
    const isOff = (state: unknown) => state === 'poweredOff';
    const wait = { ...this.#watcherOptions, signal, timeoutMs: gracePeriodMs };
    if (await waitForProperty(vm, 'runtime.powerState', isOff, wait)) return undefined;
    return this.powerOff(vm, options);
  }

  /**
   * Removes a VM folder and unregisters the machines in it. The files of the machines stay on the datastores. The task
   * fails if a machine is powered on. vCenter has no call that removes a folder only when it is empty.
   */
  async unregisterFolder(folder: Ref<'Folder'>, options: ChangeOptions = {}): Promise<TaskRef> {
    const description = options.description ?? `removing ${nameOf(folder)}`;
    const call = { ...options, description };
    return assertTask(
      description,
      await this.#calls.change('UnregisterAndDestroy_Task', () => folder, {}, call),
    );
  }

  /** Destroys a machine, which must be off, or a folder with all machines in it. */
  async destroy(object: Ref, options: ChangeOptions = {}): Promise<TaskRef> {
    const description = options.description ?? `destroying ${nameOf(object)}`;
    return assertTask(
      description,
      await this.#calls.change('Destroy_Task', () => object, {}, { ...options, description }),
    );
  }

  /**
   * Creates a folder.
   * @throws FaultError `DUPLICATE_NAME` when the folder exists; `faultOf(error, 'DuplicateName')?.object` is its
   * reference
   */
  async createFolder(
    parent: Ref<'Folder'>,
    name: string,
    options: ChangeOptions = {},
  ): Promise<Ref<'Folder'>> {
    const description = options.description ?? `creating folder '${name}' in ${nameOf(parent)}`;
    const created = await this.#calls.change(
      'CreateFolder',
      () => parent,
      { name },
      { ...options, description },
    );
    if (isRef(created, 'Folder')) return created;
    throw new InvalidResponseError(`${description}: the response is not a folder reference`, {
      effectUnknown: true,
    });
  }

  /** Renames a folder. The task fails when another object in the parent folder has the new name. */
  async renameFolder(folder: Ref<'Folder'>, newName: string, options: ChangeOptions = {}): Promise<TaskRef> {
    const description = options.description ?? `renaming ${nameOf(folder)} to '${newName}'`;
    return assertTask(
      description,
      await this.#calls.change('Rename_Task', () => folder, { newName }, { ...options, description }),
    );
  }
}

function assertTask(description: string, ref: Ref): TaskRef {
  if (isRef(ref, 'Task')) return ref;
  throw new InvalidResponseError(`${description}: the response is not a task reference`, {
    effectUnknown: true,
  });
}
