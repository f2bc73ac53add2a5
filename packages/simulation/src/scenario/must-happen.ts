import { API_SERVER } from '../apiserver/simulated.ts';
import { REQUEST_FAULTS, STREAM_FAULTS } from '../world/faults.ts';

export const COMPACTED = 'the watch history was compacted';

/**
 * Faults of a scenario in which replicas of the operator use the API server and this backend. When many seeds are run,
 * each fault must occur in at least one seed.
 */
export function commonFaults(backend: string): readonly string[] {
  return [
    ...REQUEST_FAULTS.map((fault) => `request ${fault}`),
    ...STREAM_FAULTS.map((fault) => `stream ${fault}`),
    'request arrived after a crash',
    'request arrived after the client gave up',
    'a replica crashed',
    'a replica ended',
    'a replica was paused',
    `a replica was partitioned from ${API_SERVER}`,
    `a replica was partitioned from ${backend}`,
    'a clock jumped',
    COMPACTED,
    'a list was old',
  ];
}
