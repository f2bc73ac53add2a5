import { API_SERVER } from '../apiserver/simulated.ts';
import type { Simulation } from '../world/simulation.ts';

/**
 * One run in N leaves stalled streams silent after the faults stop, so that the client has to detect the
 * stall.
 */
const SILENT_ONE_IN = 4;

/**
 * In most runs, breaks all streams, as an API server usually does when it comes back. A client detects a stalled stream
 * only after 70 s. If streams stayed stalled in every run, most of the run would consist of lease renewals.
 */
export function healStreams({ choices, network, counts }: Simulation): void {
  if (choices.oneIn(SILENT_ONE_IN)) counts.add('streams stayed silent');
  else network.cut(API_SERVER);
}
