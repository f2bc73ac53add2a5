import { API_SERVER } from '../apiserver/simulated.ts';
import type { Simulation } from '../world/simulation.ts';

/** Probability: in one run of N, stalled streams stay silent after healing and the client has to notice. */
const SILENT_ONE_IN = 4;

/**
 * Breaks the streams, as mostly happens when the API server comes back. Otherwise a stalled stream is noticed
 * only after 70 s, which would be most of a run, with nothing but renewals in it.
 */
export function healStreams({ choices, network, counts }: Simulation): void {
  if (choices.oneIn(SILENT_ONE_IN)) counts.add('streams stayed silent');
  else network.cut(API_SERVER);
}
