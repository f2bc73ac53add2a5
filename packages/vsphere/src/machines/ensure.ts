import { type FaultCode, FaultError } from '../faults.ts';
import type { Ref } from '../properties/properties.ts';
import type { ChangeOptions } from '../session/session-client.ts';
import type { VcenterClient } from '../vcenter-client.ts';
import type { TaskRef } from './machines.ts';

/** Change that a vCenter task makes to a machine. */
export type MachineChange = 'powerOn' | 'powerOff' | 'destroy';

export interface EnsureOptions extends ChangeOptions {
  /** Called right after a vCenter task has started, with the task and the change that it makes. */
  readonly onTask?: ((task: TaskRef, change: MachineChange) => void) | undefined;
}

export interface EnsureDestroyedOptions extends EnsureOptions {
  /** Whether to power the machine off first: vCenter does not destroy a running machine. @default true */
  readonly powerOff?: boolean | undefined;
}

/** Powers a machine on and waits for the task. Succeeds when the machine is already on. @throws VsphereError */
export async function ensurePoweredOn(
  client: Pick<VcenterClient, 'machines' | 'tasks'>,
  vm: Ref<'VirtualMachine'>,
  options: EnsureOptions = {},
): Promise<void> {
  await ignoreFaults(['INVALID_POWER_STATE'], async () =>
    follow(client, await client.machines.powerOn(vm, options), 'powerOn', options),
  );
}

/**
 * Powers a machine off, without guest shutdown, and waits for the task. Succeeds when the machine is already off.
 * @throws VsphereError
 */
export async function ensurePoweredOff(
  client: Pick<VcenterClient, 'machines' | 'tasks'>,
  vm: Ref<'VirtualMachine'>,
  options: EnsureOptions = {},
): Promise<void> {
  await ignoreFaults(['INVALID_POWER_STATE'], async () =>
    follow(client, await client.machines.powerOff(vm, options), 'powerOff', options),
  );
}

/**
 * Powers a machine off, destroys it with its disks, and waits for both tasks.
 * @returns true if this call destroyed the machine, and false if vCenter does not know the reference. In the second
 * case the machine may still exist, because it gets another reference when it is unregistered and registered again. The
 * caller can look it up by its instance UUID.
 * @throws VsphereError
 */
export async function ensureDestroyed(
  client: Pick<VcenterClient, 'machines' | 'tasks'>,
  vm: Ref<'VirtualMachine'>,
  { powerOff = true, ...options }: EnsureDestroyedOptions = {},
): Promise<boolean> {
  const isDestroyed = await ignoreFaults(['OBJECT_NOT_FOUND'], async () => {
    if (powerOff) await ensurePoweredOff(client, vm, options);
    await follow(client, await client.machines.destroy(vm, options), 'destroy', options);
    return true;
  });
  return isDestroyed ?? false;
}

/**
 * Runs `work` and ignores faults which mean that the desired state is already reached.
 * @returns the result of `work`, or undefined when it failed with one of `codes`
 */
export async function ignoreFaults<T>(
  codes: readonly FaultCode[],
  work: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof FaultError && codes.includes(error.code)) return undefined;
    throw error;
  }
}

async function follow(
  client: Pick<VcenterClient, 'machines' | 'tasks'>,
  task: TaskRef,
  change: MachineChange,
  { onTask, signal, description }: EnsureOptions,
): Promise<void> {
  onTask?.(task, change);
  await client.tasks.follow(task, { signal, description });
}
