import { conditionOf } from '@vmwright/runtime';
import { plainAddress } from './addresses.ts';
import { shouldRun } from './children.ts';
import type { VirtualMachine } from './resource.ts';

/**
 * Whether a VirtualMachine keeps an address that another VirtualMachine also has. The first of these facts that is true for only
 * one of them decides: it runs with the address; it should run; its status reports no address conflict; it has a disk.
 * If none decides, the older one keeps the address. If both were created in the same second, the one with the lower UID keeps it.
 * Both VirtualMachines come to the same result.
 */
export function keepsAddress(a: VirtualMachine, b: VirtualMachine, address: string): boolean {
  const [factsA, factsB] = [factsOf(a, address), factsOf(b, address)];
  const decisive = factsA.findIndex((fact, i) => fact !== factsB[i]);
  if (decisive !== -1) return factsA[decisive] === true;
  const [atA, atB] = [a, b].map(({ metadata }) => Date.parse(metadata.creationTimestamp ?? ''));
  if (atA !== atB && atA !== undefined && atB !== undefined) return atA < atB;
  return (a.metadata.uid ?? '') < (b.metadata.uid ?? '');
}

/**
 * Returns the fields that decide which addresses a VirtualMachine keeps. A change of these fields enqueues the other
 * VirtualMachines that have the same addresses.
 */
export function holderPart(vm: VirtualMachine): readonly unknown[] {
  const { metadata, spec, status } = vm;
  return [metadata.uid, spec.interfaces, status?.ip, ...factsOf(vm, '')];
}

/**
 * Returns the first four facts that `keepsAddress` lists, in that order. While the machine that keeps an address restarts, it
 * reports no address. It still keeps the address then, because the status of the other VirtualMachine reports the conflict.
 */
function factsOf(vm: VirtualMachine, address: string): readonly boolean[] {
  const { ip, conditions, dataVolume } = vm.status ?? {};
  const isReported = ip !== undefined && plainAddress(ip) === address;
  const hasConflict = conditionOf(conditions, 'Stalled')?.reason === 'AddressConflict';
  return [isReported, shouldRun(vm), !hasConflict, dataVolume !== undefined];
}
