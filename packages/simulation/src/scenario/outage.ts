import type { Simulation } from '../world/simulation.ts';

/** Nobody of these gets through to a server for a while. */
export function cutOff(
  { schedule, choices, network }: Simulation,
  names: readonly string[],
  origin: string,
  mostMs: number,
): void {
  for (const name of names) network.partition(name, origin);
  schedule.after(1_000 + choices.pick(mostMs), () => {
    for (const name of names) network.heal(name, origin);
  });
}

/** Everybody gets an answer for a while, and none of it is the server's. */
export function putOutOfOrder(
  { schedule, choices }: Simulation,
  server: { outOfOrder: boolean },
  mostMs: number,
): void {
  server.outOfOrder = true;
  schedule.after(1_000 + choices.pick(mostMs), () => {
    server.outOfOrder = false;
  });
}
