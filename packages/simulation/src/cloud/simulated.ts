import { type FaultRates, REQUEST_FAULTS, USUAL_FAULTS } from '../world/faults.ts';
import type { Simulation } from '../world/simulation.ts';
import { EPOCH_MS } from '../world/world.ts';
import { Cloud } from './cloud.ts';

export const CLOUD = 'https://cloud.simulated';

/** Maximum age of the state that a list shows. */
export const MAX_LAG_MS = 5_000;

/**
 * Fault rates of the cloud, higher than the API server's. Late requests are the most frequent fault, because they do
 * the most harm.
 */
export const CLOUD_FAULTS: FaultRates = {
  ...USUAL_FAULTS,
  request: 5,
  requestFaults: [...REQUEST_FAULTS, 'late', 'late', 'late', 'answer lost'],
};

/** Page size of lists. It is small, so that lists have several pages although a run has few servers. */
const MAX_PAGE_SIZE = 3;
/** While faults are active, one server in 16 fails to boot. */
const FAILING = 16;

/** Creates a private cloud for a simulation. The caller registers it with `Traffic.serve`. */
export function simulatedCloud(simulation: Simulation, apiKey: string): Cloud {
  const { schedule, choices, counts, network } = simulation;
  return new Cloud({
    apiKey,
    environment: {
      now: () => EPOCH_MS + schedule.now,
      uuid: () => simulation.uuid(),
      after: (ms, act) => void schedule.after(ms, act),
      bootMs: () => choices.delay(1_000, 10_000),
      wipeMs: () => choices.delay(3_000, 10_000),
      bootFails: () => network.faulty && choices.oneIn(FAILING),
      lagMs: () => {
        const lag = network.faulty && choices.oneIn(2) ? choices.pick(MAX_LAG_MS) : 0;
        if (lag > 0) counts.add('a list was old');
        return lag;
      },
      maxPageSize: MAX_PAGE_SIZE,
      note: (what) => simulation.note('cloud', what),
    },
  });
}
