import type { Simulation } from '../world/simulation.ts';

/** Plans between none and `most` calls of an action, at random times within `ms`. */
export function atRandomTimes(
  { choices, schedule }: Simulation,
  most: number,
  ms: number,
  act: () => void,
): void {
  for (let count = choices.pick(most + 1); count > 0; count--) schedule.after(choices.pick(ms), act);
}
