import type { Simulation } from '../world/simulation.ts';

/** Disconnects the processes from a server for a random time. */
export function partition(
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

/** Makes the server answer all requests with errors for a random time. */
export function failRequests(
  { schedule, choices }: Simulation,
  server: { outOfOrder: boolean },
  mostMs: number,
): void {
  server.outOfOrder = true;
  schedule.after(1_000 + choices.pick(mostMs), () => {
    server.outOfOrder = false;
  });
}
