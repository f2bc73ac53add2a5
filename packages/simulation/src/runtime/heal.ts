import { API_SERVER } from '../apiserver/simulated.ts';
import type { Simulation } from '../world/simulation.ts';

/**
 * One run in N leaves stalled streams silent after the faults stop, so that the client has to detect the
 * stall.
 */
const SILENT_ONE_IN = 4;

/**
 * Breaks all streams in most runs, as an API server usually does when it comes back. If streams stayed stalled in every
 * run, the client would detect the stall only after 70 s, and most of the run would consist of lease renewals.
 */
export function healStreams({ choices, network, counts }: Simulation): void {
  if (choices.oneIn(SILENT_ONE_IN)) counts.add('streams stayed silent');
  else network.cut(API_SERVER);
}
