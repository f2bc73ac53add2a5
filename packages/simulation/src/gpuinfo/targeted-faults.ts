import type { Truth } from '../invariants/invariant.ts';
import type { FaultInjector } from '../scenario/fault-injector.ts';
import { isLedgerWrite } from './reservations.ts';

/** Probability: one in N writes triggers a fault. Writes of leases are not counted. */
const FAULT_ONE_IN = 24;
/** Probability: one in N writes of the reservations pauses its sender. */
const LEDGER_PAUSE_ONE_IN = 12;
/**
 * Maximum delay of a fault after the write that triggers it. It is the typical duration of a request and its response.
 */
const SOON_MS = 200;

/**
 * Injects faults at critical moments. Shortly after a write, a random fault occurs: for example, the leader crashes
 * between storing reservations and writing statuses. While the leader stores reservations, it may be paused.
 */
export function injectTargetedFaults({ traffic, simulation }: Truth, faultInjector: FaultInjector): void {
  const { choices, schedule, network } = simulation;
  traffic.onSend((sent) => {
    if (!network.faulty || sent.path.includes('/leases')) return;
    const [name = ''] = sent.sender.split('.');
    if (choices.oneIn(FAULT_ONE_IN))
      schedule.after(choices.pick(SOON_MS), () => faultInjector.injectFault(name));
    if (isLedgerWrite(sent) && choices.oneIn(LEDGER_PAUSE_ONE_IN)) faultInjector.pause(name);
  });
}
