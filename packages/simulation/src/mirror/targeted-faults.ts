import { API_SERVER } from '../apiserver/simulated.ts';
import type { DatabaseServer } from '../database/server.ts';
import type { Truth } from '../invariants/invariant.ts';
import type { FaultInjector } from '../scenario/fault-injector.ts';
import { isBatch } from './critical-moments.ts';
import type { DatabaseFaults } from './database-faults.ts';

/**
 * Probabilities: one event in N triggers the fault. `FAULT`, `PAUSE` and `LOCK` count batches, `ACQUIRE` counts
 * statements that acquire or release the fence, `READ` counts reads of the table, and `FAIL_OVER` counts commits.
 */
const FAULT_ONE_IN = 24;
const PAUSE_ONE_IN = 12;
const ACQUIRE_ONE_IN = 40;
const READ_ONE_IN = 80;
const FAIL_OVER_ONE_IN = 60;
const LOCK_ONE_IN = 20;
/**
 * Maximum delay of a fault after the event that triggers it. It is the typical duration of a request and its response.
 */
const SOON_MS = 200;

/**
 * Injects faults at critical moments: between the leadership check and the commit of a batch, while a session acquires
 * the fence, while the table is read, and right after a commit.
 */
export function injectTargetedFaults(
  truth: Truth,
  database: DatabaseServer,
  faultInjector: FaultInjector,
  databaseFaults: DatabaseFaults,
): void {
  const { traffic, simulation } = truth;
  const { choices, schedule, network } = simulation;
  const isFaulty = () => network.faulty;
  const soon = (act: () => void) =>
    schedule.after(choices.pick(SOON_MS), () => {
      if (isFaulty()) act();
    });
  traffic.onSend((sent) => {
    if (!isFaulty() || sent.origin === API_SERVER) return;
    const [name = ''] = sent.sender.split('.');
    if (isBatch(sent)) {
      if (choices.oneIn(PAUSE_ONE_IN)) faultInjector.pause(name);
      if (choices.oneIn(FAULT_ONE_IN)) soon(() => faultInjector.injectFault(name));
      const [first] = idsIn(sent.body ?? '');
      if (choices.oneIn(LOCK_ONE_IN)) databaseFaults.lockRow(database.table.get(first ?? ''));
    } else if (choices.oneIn(ACQUIRE_ONE_IN)) {
      // Pauses the replica, so that it may no longer lead when it gets the response.
      faultInjector.pause(name);
    }
  });
  database.listen((event) => {
    if (!isFaulty()) return;
    const [name = ''] = event.session.identity.split('.');
    if (event.type === 'committed' && event.written > 0 && choices.oneIn(FAIL_OVER_ONE_IN))
      soon(() => databaseFaults.failOver());
    if (event.type === 'read' && choices.oneIn(READ_ONE_IN)) soon(() => faultInjector.injectFault(name));
  });
}

function idsIn(body: string): readonly string[] {
  const { writes }: { readonly writes: readonly { readonly id: string }[] } = JSON.parse(body);
  return writes.map(({ id }) => id);
}
