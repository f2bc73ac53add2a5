import { GPUINFO_MUTANTS } from '../gpuinfo/mutants.ts';
import { MIRROR_MUTANTS } from '../mirror/mutants.ts';
import { VIRTUAL_MACHINE_MUTANTS } from '../virtualmachine/mutants.ts';
import { VM_MUTANTS } from '../vm/mutants.ts';
import { VMGROUP_MUTANTS } from '../vmgroup/mutants.ts';
import { ELECTION_MUTANTS } from './election-mutants.ts';
import type { Mutant } from './mutant.ts';
import { RUNTIME_MUTANTS } from './runtime-mutants.ts';
import { SAMPLE_MUTANTS } from './sample-mutants.ts';
import { SHARDING_MUTANTS } from './sharding-mutants.ts';

/** All mutants. A mutant that no seed finds shows a gap in the simulation. */
export const MUTANTS: readonly Mutant[] = [
  ...RUNTIME_MUTANTS,
  ...ELECTION_MUTANTS,
  ...SHARDING_MUTANTS,
  ...SAMPLE_MUTANTS,
  ...VM_MUTANTS,
  ...VMGROUP_MUTANTS,
  ...MIRROR_MUTANTS,
  ...VIRTUAL_MACHINE_MUTANTS,
  ...GPUINFO_MUTANTS,
];

/** Returns the mutant with this name. @throws when there is none */
export function mutantNamed(name: string): Mutant {
  const found = MUTANTS.find((mutant) => mutant.name === name);
  if (found === undefined) throw new Error(`mutant "${name}" does not exist`);
  return found;
}
