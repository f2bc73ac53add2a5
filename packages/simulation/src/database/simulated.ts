import type { FaultRates } from '../world/faults.ts';
import type { Simulation } from '../world/simulation.ts';
import { EPOCH_MS } from '../world/world.ts';
import { DatabaseServer } from './server.ts';
import type { TableRow } from './table.ts';

/** Fault rates on the connections to the database. */
export const DATABASE_FAULTS: FaultRates = {
  request: 40, // a fault in one of 40 requests: fewer than usual, because every fault ends the session
  requestFaults: ['lost', 'half-open', 'refused', 'throttled', 'reset', 'answer lost', 'late'],
  line: 80,
  streamFaults: ['cut', 'stalled'],
};

/** One statement in `oneIn` takes up to `ms` milliseconds on the server. */
const SLOW_STATEMENT = { oneIn: 12, ms: 12_000 };
/** One batch in `oneIn` waits up to `ms` milliseconds before it is executed. The wait can exceed a lease duration. */
const QUEUED_BATCH = { oneIn: 8, ms: 45_000 };
/** Page size of table reads. It is small, so that a read has several pages and rows change between them. */
const PAGE_ROWS = 5;

/** Creates the database of a simulation. @param rejects whether a constraint rejects this status in this row */
export function simulatedDatabase(
  simulation: Simulation,
  rejects: (row: TableRow, status: string) => boolean,
): DatabaseServer {
  const { schedule, choices, network } = simulation;
  const oneIn = (n: number) => network.faulty && choices.oneIn(n);
  const database = new DatabaseServer({
    now: () => EPOCH_MS + Math.round(schedule.now),
    after: (ms, act) => void schedule.after(ms, act),
    executionMs: () => (oneIn(SLOW_STATEMENT.oneIn) ? 1 + choices.pick(SLOW_STATEMENT.ms) : 0),
    queuedMs: () => (oneIn(QUEUED_BATCH.oneIn) ? 1 + choices.pick(QUEUED_BATCH.ms) : 0),
    lingers: () => oneIn(3),
    commitsWhenTerminated: () => choices.oneIn(2),
    pageRows: PAGE_ROWS,
    rejects,
    note: (what) => simulation.note('database', what),
  });
  database.table.listen(({ before, after, cause }) => {
    const who = typeof cause === 'object' ? `session ${cause.session}` : cause;
    simulation.note('database', `${(after ?? before)?.id} becomes ${after?.status} by ${who}`);
  });
  return database;
}
