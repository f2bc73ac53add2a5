import { gpuinfo } from '../gpuinfo/scenario.ts';
import { mirror, mirrorSharding } from '../mirror/scenario.ts';
import { runtime } from '../runtime/runtime.ts';
import { sharding } from '../runtime/sharding.ts';
import { carelessGreeter, greeter } from '../samples/greeter.ts';
import { machines } from '../samples/machines/scenario.ts';
import { VARIANTS, WRONG_ORDER } from '../samples/machines/variant.ts';
import type { Scenario } from '../scenario/scenario.ts';
import { virtualmachine } from '../virtualmachine/scenario.ts';
import { vm } from '../vm/scenario.ts';
import { vmgroup } from '../vmgroup/scenario.ts';

const variants = [...VARIANTS, WRONG_ORDER];
const isSound = ({ name }: (typeof variants)[number]) => name === 'sound';

/** Scenarios in which no invariant may be violated. `make test` and `make simulate` run all of them. */
export const scenarios: readonly Scenario[] = [
  greeter,
  runtime,
  sharding,
  ...variants.filter(isSound).map(machines),
  vm,
  vmgroup,
  mirror,
  mirrorSharding,
  virtualmachine,
  gpuinfo,
];

/**
 * Scenarios with known violations, which show that the simulation finds them. They run only if `SCENARIO` names them.
 */
export const unsound: readonly Scenario[] = [
  carelessGreeter,
  ...variants.filter((variant) => !isSound(variant)).map(machines),
];
