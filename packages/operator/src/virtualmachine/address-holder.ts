import { conditionOf } from '@vmwright/runtime';
import { plainAddress } from './addresses.ts';
import { shouldRun } from './children.ts';
import type { VirtualMachine } from './resource.ts';

/**
 * Whether a VirtualMachine keeps an address that another one has, too. The first of these facts that holds for only one of them
 * decides: it runs with the address; it should run; it has no conflict itself, and so is not halted; it has a disk. Then the
 * older one keeps it, by creation time, which has a precision of seconds; then the one with the lower UID. Both VirtualMachines
 * come to the same result.
 */
export function keepsAddress(a: VirtualMachine, b: VirtualMachine, address: string): boolean {
  const [factsA, factsB] = [factsOf(a, address), factsOf(b, address)];
  const decisive = factsA.findIndex((fact, i) => fact !== factsB[i]);
  if (decisive !== -1) return factsA[decisive] === true;
  const [atA, atB] = [a, b].map(({ metadata }) => Date.parse(metadata.creationTimestamp ?? ''));
  if (atA !== atB && atA !== undefined && atB !== undefined) return atA < atB;
  return (a.metadata.uid ?? '') < (b.metadata.uid ?? '');
}

/** Returns the part of a VirtualMachine that decides which addresses it keeps. */
export function holderPart(vm: VirtualMachine): readonly unknown[] {
  const { metadata, spec, status } = vm;
  return [metadata.uid, spec.interfaces, status?.ip, ...factsOf(vm, '')];
}

/**
 * Returns the facts that `keepsAddress` compares. The conflict is stored, so that a machine keeps its address while it restarts and
 * reports none.
 */
function factsOf(vm: VirtualMachine, address: string): readonly boolean[] {
  const { ip, conditions, dataVolume } = vm.status ?? {};
  const isReported = ip !== undefined && plainAddress(ip) === address;
  const hasConflict = conditionOf(conditions, 'Stalled')?.reason === 'AddressConflict';
  return [isReported, shouldRun(vm), !hasConflict, dataVolume !== undefined];
}
