import { API_SERVER } from '../apiserver/simulated.ts';
import type { Cloud } from '../cloud/cloud.ts';
import type { Truth } from '../invariants/invariant.ts';
import { objectOf } from '../invariants/machines.ts';
import type { FaultInjector } from '../scenario/fault-injector.ts';
import { serversOf } from './external-resources.ts';
import { onVmChange, RECREATE, vmIdOf, vmnameOf } from './objects.ts';
import { deletedId, isCreate, requestedOwner } from './requests.ts';
import type { ThirdParties } from './third-parties.ts';
import { NAMES, type User } from './user.ts';

/** Probabilities: one write in N triggers the fault. */
const FAULT_ONE_IN = 32;
const PAUSE_ONE_IN = 20;
const USER_CHANGE_ONE_IN = 5;
const PROHIBIT_ONE_IN = 6;
const REMOVE_ONE_IN = 6;
const ORPHAN_ONE_IN = 4;
const VANISH_ONE_IN = 8;
/** Probability: in one run in N, the servers of one VM disappear repeatedly. */
const UNLUCKY_ONE_IN = 8;
/** Typical duration of a request and its response. */
const SOON_MS = 200;
/** Maximum delay until the user orphans a new machine. It is less than one interval of garbage collection. */
const LATER_MS = 10_000;

export interface TargetedFaultParts {
  readonly faultInjector: FaultInjector;
  readonly user: User;
  readonly thirdParties: ThirdParties;
  readonly cloud: Cloud;
}

/**
 * Injects faults that would rarely happen at random times. A process stops between storing an intent and creating a
 * server. A VM or its server is deleted during a create. A server vanishes just when the operator is about to delete
 * it.
 */
export function injectTargetedFaults(
  truth: Truth,
  { faultInjector, user, thirdParties, cloud }: TargetedFaultParts,
): void {
  const { traffic, simulation } = truth;
  const { choices, schedule, network } = simulation;
  const soon = (act: () => void) =>
    schedule.after(choices.delay(), () => {
      if (network.faulty) act();
    });
  traffic.onSend((sent) => {
    if (!network.faulty || sent.path.includes('/leases')) return;
    const [name = ''] = sent.sender.split('.');
    if (choices.oneIn(FAULT_ONE_IN))
      schedule.after(choices.pick(SOON_MS), () => faultInjector.injectFault(name));
    // Pauses the sender as it sends the request. When the sender resumes and takes the next step, another
    // replica may lead.
    if (sent.origin === API_SERVER && choices.oneIn(PAUSE_ONE_IN)) faultInjector.pause(name);
    const deleted = cloud.servers.get(deletedId(sent) ?? '');
    if (deleted !== undefined && choices.oneIn(VANISH_ONE_IN)) thirdParties.vanish(deleted);
    if (!isCreate(sent)) return;
    const uid = requestedOwner(sent);
    const object = objectOf(truth, uid);
    if (object !== undefined && choices.oneIn(USER_CHANGE_ONE_IN)) {
      // Pauses the sender in half of the cases, so that another replica can finalize the VM before the request arrives.
      // A sender that is not paused keeps the finalizer until it gets the response.
      if (choices.oneIn(2)) faultInjector.pause(name);
      soon(() => user.delete(object.metadata.name));
    }
    if (object !== undefined && choices.oneIn(PROHIBIT_ONE_IN))
      soon(() => thirdParties.prohibit(vmnameOf(object)));
    if (choices.oneIn(REMOVE_ONE_IN)) soon(() => thirdParties.remove(serversOf(cloud, uid)[0]));
  });
  const unlucky = choices.oneIn(UNLUCKY_ONE_IN) ? choices.one(NAMES) : undefined;
  onVmChange(truth, (before, after) => {
    if (!network.faulty || after === undefined) return;
    if (before === undefined) {
      if (after.metadata.name === unlucky) soon(() => user.annotate(unlucky, RECREATE, 'true'));
      return;
    }
    const vmId = vmIdOf(after);
    if (vmId === undefined || vmIdOf(before) === vmId) return;
    const { name, uid = '' } = after.metadata;
    // Removes the server while another create request for its VM is in flight. The late create must not restore the
    // server.
    if (isAwaited(truth, uid)) soon(() => thirdParties.vanish(cloud.servers.get(vmId)));
    else if (name === unlucky) soon(() => thirdParties.remove(cloud.servers.get(vmId)));
    else if (choices.oneIn(ORPHAN_ONE_IN)) schedule.after(choices.pick(LATER_MS), () => user.orphan(name));
  });
}

/** Whether another create for this VM is in flight. */
function isAwaited({ traffic }: Truth, uid: string): boolean {
  return traffic.inFlight().some((sent) => isCreate(sent) && requestedOwner(sent) === uid);
}
