import { API_SERVER } from '../apiserver/simulated.ts';
import type { Simulation } from '../world/simulation.ts';

/** In one history of so many, streams that have fallen silent stay so when all heals, and somebody has to notice. */
const SILENT_ONE_IN = 4;

/**
 * Streams break when the API server comes back, as they mostly do. Otherwise one that has fallen silent is noticed after 70 s:
 * of all that is simulated that would be the longest part, with nothing in it but renewals.
 */
export function healStreams({ choices, network, counts }: Simulation): void {
  if (choices.oneIn(SILENT_ONE_IN)) counts.add('streams stayed silent');
  else network.cut(API_SERVER);
}
