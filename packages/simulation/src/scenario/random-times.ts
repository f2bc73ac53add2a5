import type { Simulation } from '../world/simulation.ts';

/** Schedules up to `most` calls of an action, at random times within `ms` milliseconds. */
export function atRandomTimes(
  { choices, schedule }: Simulation,
  most: number,
  ms: number,
  act: () => void,
): void {
  for (let count = choices.pick(most + 1); count > 0; count--) schedule.after(choices.pick(ms), act);
}
