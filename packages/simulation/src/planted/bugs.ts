import { VM_BUGS } from '../vm/bugs.ts';
import { VMGROUP_BUGS } from '../vmgroup/bugs.ts';
import { LEAD_BUGS } from './lead-bugs.ts';
import type { Planted } from './planted.ts';
import { RUNTIME_BUGS } from './runtime-bugs.ts';
import { SAMPLE_BUGS } from './sample-bugs.ts';
import { SHARDING_BUGS } from './sharding-bugs.ts';

/** All of them: each must be found, else the simulation has a hole. */
export const BUGS: readonly Planted[] = [
  ...RUNTIME_BUGS,
  ...LEAD_BUGS,
  ...SHARDING_BUGS,
  ...SAMPLE_BUGS,
  ...VM_BUGS,
  ...VMGROUP_BUGS,
];

export function bugNamed(name: string): Planted {
  const found = BUGS.find((bug) => bug.name === name);
  if (found === undefined) throw new Error(`there is no planted bug "${name}"`);
  return found;
}
