import { type FaultRates, REQUEST_FAULTS, USUAL_FAULTS } from '../world/faults.ts';
import type { Simulation } from '../world/simulation.ts';
import { EPOCH_MS } from '../world/world.ts';
import { Cloud } from './cloud.ts';

export const CLOUD = 'https://cloud.simulated';

/** How old a list may be. */
export const LONGEST_LAG_MS = 5_000;

/** Worse than the way to the API server, and what comes late is what does the most harm. */
export const CLOUD_FAULTS: FaultRates = {
  ...USUAL_FAULTS,
  request: 5,
  requestFaults: [...REQUEST_FAULTS, 'late', 'late', 'late', 'answer lost'],
};

/** Three servers a page: a history has few, and they shall not all come at once. */
const LONGEST_PAGE = 3;
/** One machine in so many does not come up. */
const FAILING = 16;

/** A private cloud for a simulated world; `Traffic.serve` puts it there. */
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
        const lag = network.faulty && choices.oneIn(2) ? choices.pick(LONGEST_LAG_MS) : 0;
        if (lag > 0) counts.add('a list was old');
        return lag;
      },
      longestPage: LONGEST_PAGE,
      note: (what) => simulation.note('cloud', what),
    },
  });
}
