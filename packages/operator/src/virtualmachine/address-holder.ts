import { conditionOf } from '@vmwright/runtime';
import { plainAddress } from './addresses.ts';
import { shouldRun } from './children.ts';
import type { VirtualMachine } from './resource.ts';

/**
 * Whether VirtualMachine `a` keeps an address that `b` also has. These criteria are checked in order. The first
 * criterion that only one of the two VirtualMachines meets decides:
 * 1. It runs with the address.
 * 2. It should run.
 * 3. Its status reports no address conflict.
 * 4. It has a disk.
 * 5. It was created first.
 * 6. It has the lower UID.
 *
 * So the reconciles of both VirtualMachines come to the same result.
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
 * Returns for each of the first four criteria of `keepsAddress` whether a VirtualMachine meets it. The third criterion
 * is needed for restarts: a machine that restarts reports no address for a while. It keeps its address nevertheless,
 * because only the other VirtualMachine reports the conflict.
 */
function factsOf(vm: VirtualMachine, address: string): readonly boolean[] {
  const { ip, conditions, dataVolume } = vm.status ?? {};
  const isReported = ip !== undefined && plainAddress(ip) === address;
  const hasConflict = conditionOf(conditions, 'Stalled')?.reason === 'AddressConflict';
  return [isReported, shouldRun(vm), !hasConflict, dataVolume !== undefined];
}
