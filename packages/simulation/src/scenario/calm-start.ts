import type { Simulation } from '../world/simulation.ts';

/** Suppresses network faults at the start of a run, for at least `leastMs` and less than `leastMs + mostMs`. */
export function calmAtFirst(
  { schedule, network, choices }: Simulation,
  leastMs: number,
  mostMs: number,
): void {
  schedule.after(0, () => {
    network.faulty = false;
  });
  schedule.after(leastMs + choices.pick(mostMs), () => {
    network.faulty = true;
  });
}
