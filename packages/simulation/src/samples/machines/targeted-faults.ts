import { API_SERVER } from '../../apiserver/simulated.ts';
import type { Truth } from '../../invariants/invariant.ts';
import { objectOf } from '../../invariants/machines.ts';
import type { FaultInjector } from '../../scenario/fault-injector.ts';
import { isCreate, ownerIn } from './requests.ts';
import type { User } from './user.ts';

/** Probabilities: one write in N triggers the fault. */
const FAULT_ONE_IN = 12;
const PAUSE_ONE_IN = 12;
const USER_CHANGE_ONE_IN = 5;
/** Typical duration of a request and its response. */
const SOON_MS = 200;

/**
 * Injects faults at critical moments. Faults at random times would rarely stop a process between storing an intent and
 * creating a machine, or delete an object while its machine is being created.
 */
export function injectTargetedFaults(truth: Truth, faultInjector: FaultInjector, user: User): void {
  const { traffic, simulation } = truth;
  const { choices, schedule, network } = simulation;
  traffic.onSend((sent) => {
    if (!network.faulty || sent.path.includes('/leases')) return;
    const [name = ''] = sent.sender.split('.');
    if (choices.oneIn(FAULT_ONE_IN))
      schedule.after(choices.pick(SOON_MS), () => faultInjector.injectFault(name));
    // Pauses the sender as it sends the request. When the sender resumes and takes the next step, another
    // replica may lead.
    if (sent.origin === API_SERVER && choices.oneIn(PAUSE_ONE_IN)) faultInjector.pause(name);
    if (!isCreate(sent) || !choices.oneIn(USER_CHANGE_ONE_IN)) return;
    const object = objectOf(truth, ownerIn(sent));
    if (object !== undefined)
      schedule.after(choices.delay(), () => {
        if (network.faulty) user.delete(object.metadata.name);
      });
  });
}
