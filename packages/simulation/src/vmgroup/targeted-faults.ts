import type { StoredObject } from '../apiserver/object.ts';
import { API_SERVER } from '../apiserver/simulated.ts';
import type { Truth } from '../invariants/invariant.ts';
import { Holder } from '../invariants/leaders.ts';
import { objectOf } from '../invariants/machines.ts';
import type { FaultInjector } from '../scenario/fault-injector.ts';
import { LEASE } from '../scenario/observed-manager.ts';
import type { Replicas } from '../scenario/replicas.ts';
import type { Pace } from '../vcenter/simulated.ts';
import type { Vcenter } from '../vcenter/vcenter.ts';
import { MAX_LATE_MS } from '../world/network.ts';
import { machinesOf } from './external-resources.ts';
import { isDeleted, isOrphaned, onGroupChange, wantedIn } from './objects.ts';
import { isChange, isClone, methodOf, requestedOwner } from './requests.ts';
import type { ThirdParties } from './third-parties.ts';
import { FRESH, type User } from './user.ts';

/** Probabilities: one write in N triggers the fault. */
const FAULT_ONE_IN = 40;
const PAUSE_ONE_IN = 24;
const USER_CHANGE_ONE_IN = 5;
const REMOVE_ONE_IN = 10;
const KILL_SESSION_ONE_IN = 12;
const FOREIGN_MACHINE_ONE_IN = 3;
const ORPHAN_CLONE_ONE_IN = 8;
const PARTITION_ONE_IN = 4;
const HIDE_ONE_IN = 2;
const TEMPLATE_ONE_IN = 4;
const LATE_FOLDER_ONE_IN = 3;
/** Methods that can remove a group's folder. */
const FOLDER_REMOVALS: ReadonlySet<string> = new Set(['Destroy_Task', 'UnregisterAndDestroy_Task']);
/** Minimum duration of a slow clone: longer than a fail-over. */
const SLOW_MS = 30_000;
/**
 * Duration of a partition of the standby. A group is usually created within this time. The watch event of the group is
 * lost, and the standby's watch stays stalled after the partition.
 */
const PARTITION_MS = 2_000;
/** Time until a new group has machines. */
const CREATED_MS = 20_000;
/**
 * The delay of a request to create a folder is `MAX_LATE_MS` minus a random time of less than this value. Before the
 * request arrives, a new leader has usually removed the finalizer of the deleted group.
 */
const EARLIER_MS = 8_000;
/** Typical duration of a request and its response. */
const SOON_MS = 200;
/** Typical duration of a clone. */
const LATER_MS = 4_000;

export interface TargetedFaultParts {
  readonly faultInjector: FaultInjector;
  readonly user: User;
  readonly thirdParties: ThirdParties;
  readonly vcenter: Vcenter;
  readonly pace: Pace;
  readonly replicas: Replicas;
}

/**
 * Injects faults at critical moments. Faults at random times would rarely stop a process between storing a slot and
 * cloning, or change a group during a clone.
 */
export function injectTargetedFaults(truth: Truth, parts: TargetedFaultParts): void {
  const { faultInjector, user, thirdParties, vcenter, pace } = parts;
  partitionStandby(truth, parts);
  hideOrphanedMachine(truth, parts);
  makeTemplatesAtScaleIn(truth, parts);
  delayFolders(truth, parts);
  const { traffic, simulation } = truth;
  const { choices, schedule, network } = simulation;
  const within = (ms: number, act: () => void) =>
    schedule.after(1 + choices.pick(ms), () => {
      if (network.faulty) act();
    });
  traffic.onSend((sent) => {
    if (!network.faulty || sent.path.includes('/leases')) return;
    const isWrite = sent.origin === API_SERVER || isChange(sent);
    if (!isWrite) return;
    const [name = ''] = sent.sender.split('.');
    if (choices.oneIn(FAULT_ONE_IN)) within(SOON_MS, () => faultInjector.injectFault(name));
    // Pauses the sender as it sends the request. When the sender resumes and takes the next step, another
    // replica may lead.
    if (choices.oneIn(PAUSE_ONE_IN)) faultInjector.pause(name);
    if (FOLDER_REMOVALS.has(methodOf(sent)) && choices.oneIn(FOREIGN_MACHINE_ONE_IN))
      within(SOON_MS, () => thirdParties.addForeignMachine());
    if (!isClone(sent)) return;
    const { uid } = requestedOwner(sent);
    const group = objectOf(truth, uid)?.metadata;
    if (group !== undefined && choices.oneIn(USER_CHANGE_ONE_IN)) {
      const ref = { namespace: group.namespace ?? '', name: group.name };
      choices.one([
        () => within(LATER_MS, () => user.scale(ref)),
        () => within(LATER_MS, () => user.change(ref)),
        () => within(LATER_MS, () => user.delete(ref)),
        () => within(LATER_MS, () => user.orphan(ref)),
      ])();
      if (choices.oneIn(3)) faultInjector.pause(name);
    }
    // Makes the clone an orphan: the group is deleted during a slow clone, a foreign machine prevents the removal of
    // the folder, and the replica that waits for the response is paused.
    if (group !== undefined && choices.oneIn(ORPHAN_CLONE_ONE_IN)) {
      thirdParties.addForeignMachineTo(`${group.namespace}-${group.name}`);
      pace.nextCloneMs = SLOW_MS + choices.pick(SLOW_MS);
      faultInjector.pause(name);
      within(LATER_MS, () => user.delete({ namespace: group.namespace ?? '', name: group.name }));
    }
    if (choices.oneIn(REMOVE_ONE_IN))
      within(LATER_MS, () => thirdParties.remove(machinesOf(vcenter, uid)[0]));
    if (choices.oneIn(KILL_SESSION_ONE_IN)) within(LATER_MS, () => thirdParties.killSessions());
  });
}

/**
 * Moves a machine away just when its group is deleted with policy Orphan, so that the operator does not find
 * it. The machine comes back after the group is gone.
 */
function hideOrphanedMachine(truth: Truth, { thirdParties, vcenter }: TargetedFaultParts): void {
  const { choices, network } = truth.simulation;
  onGroupChange(truth, (before, after) => {
    if (!network.faulty || after === undefined || before === undefined) return;
    if (isDeleted(before) || !isDeleted(after) || !isOrphaned(after) || !choices.oneIn(HIDE_ONE_IN)) return;
    thirdParties.moveAway(machinesOf(vcenter, after.metadata.uid ?? '')[0]);
  });
}

/**
 * Delays a request to create a group's folder, and deletes the group immediately. Another replica may remove the
 * group's finalizer before the folder appears.
 */
function delayFolders({ simulation, server, kind, traffic }: Truth, parts: TargetedFaultParts): void {
  const { choices, network, schedule } = simulation;
  const { faultInjector, user, replicas } = parts;
  traffic.onSend((sent) => {
    if (!network.faulty || methodOf(sent) !== 'CreateFolder' || !choices.oneIn(LATE_FOLDER_ONE_IN)) return;
    const requested = ({ metadata }: StoredObject) =>
      [`${metadata.namespace}-${metadata.name}<`, `${metadata.uid}<`].some((end) => sent.body?.includes(end));
    const group = [...server.objects(kind)].find(requested)?.metadata;
    if (group === undefined) return;
    network.delayNext(MAX_LATE_MS - choices.pick(EARLIER_MS));
    const [name = ''] = sent.sender.split('.');
    const strike = choices.one([() => faultInjector.pause(name), () => replicas.crash(name)]);
    schedule.after(1, () => {
      strike(); // 1 ms later, because the request must be sent before the sender is paused or crashes
      user.delete({ namespace: group.namespace ?? '', name: group.name });
    });
  });
}

/** Turns machines into templates just when their group is scaled in. */
function makeTemplatesAtScaleIn(truth: Truth, { thirdParties, vcenter }: TargetedFaultParts): void {
  const { choices, network } = truth.simulation;
  onGroupChange(truth, (before, after) => {
    if (!network.faulty || after === undefined || before === undefined || isDeleted(after)) return;
    if (wantedIn(after).replicas >= wantedIn(before).replicas || !choices.oneIn(TEMPLATE_ONE_IN)) return;
    for (const machine of machinesOf(vcenter, after.metadata.uid ?? ''))
      thirdParties.turnIntoTemplate(machine);
  });
}

/**
 * Partitions the standby while a group is created, and crashes the leader when the group has machines. The new leader
 * does not know the group yet, and could mistake its machines for orphans.
 */
function partitionStandby(truth: Truth, { user, replicas }: TargetedFaultParts): void {
  const { choices, schedule, network } = truth.simulation;
  const holder = new Holder(truth, LEASE);
  user.onCreate = (group) => {
    const leader = replicas.names.find((name) => holder.identity.startsWith(`${name}.`));
    if (group === FRESH || leader === undefined || !choices.oneIn(PARTITION_ONE_IN)) return;
    for (const name of replicas.names) {
      if (name === leader) continue;
      network.partition(name, API_SERVER);
      schedule.after(PARTITION_MS, () => network.heal(name, API_SERVER));
    }
    schedule.after(CREATED_MS + choices.pick(CREATED_MS), () => {
      if (network.faulty) replicas.crash(leader);
    });
  };
}
