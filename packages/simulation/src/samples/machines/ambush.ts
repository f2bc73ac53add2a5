import { API_SERVER } from '../../apiserver/simulated.ts';
import type { Truth } from '../../invariants/invariant.ts';
import { objectOf } from '../../invariants/machines.ts';
import type { Trouble } from '../../scenario/trouble.ts';
import { isCreate, ownerIn } from './requests.ts';
import type { User } from './user.ts';

/** One write in so many is followed at once by something that makes it dangerous. */
const TROUBLE = 12;
const SLEEP = 12;
const CHANGE_OF_MIND = 5;
/** Within the time that a request and its answer usually take. */
const SOON_MS = 200;

/**
 * Waits for the moments that matter. Left to chance, few processes stop just between storing an intent and creating, and
 * few objects go while their machine is asked for: thousands of histories would show nothing.
 */
export function layAmbush(truth: Truth, trouble: Trouble, user: User): void {
  const { traffic, simulation } = truth;
  const { choices, schedule, network } = simulation;
  traffic.onSend((sent) => {
    if (!network.faulty || sent.path.includes('/leases')) return;
    const [name = ''] = sent.sender.split('.');
    if (choices.oneIn(TROUBLE)) schedule.after(choices.pick(SOON_MS), () => trouble.strike(name));
    // Asleep with the answer on its way, it wakes and goes on to the next step, when another may have the lead.
    if (sent.origin === API_SERVER && choices.oneIn(SLEEP)) trouble.pause(name);
    if (!isCreate(sent) || !choices.oneIn(CHANGE_OF_MIND)) return;
    const object = objectOf(truth, ownerIn(sent));
    if (object !== undefined)
      schedule.after(choices.delay(), () => {
        if (network.faulty) user.delete(object.metadata.name);
      });
  });
}
