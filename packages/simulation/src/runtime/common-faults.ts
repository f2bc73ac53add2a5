import { errorCount } from '../apiserver/errors.ts';
import { REQUEST_FAULTS, STREAM_FAULTS } from '../world/faults.ts';

/** Faults of every scenario of the runtime. In a run of many seeds, each fault must occur with at least one seed. */
export const COMMON_FAULTS: readonly string[] = [
  ...REQUEST_FAULTS.map((fault) => `request ${fault}`),
  ...STREAM_FAULTS.map((fault) => `stream ${fault}`),
  'request arrived after a crash',
  'request arrived after the client gave up',
  errorCount(409),
  'streams stayed silent',
  'a replica crashed',
  'a replica was stopped',
  'a replica was paused',
  'a replica was partitioned',
  "a replica's clock jumped",
];
