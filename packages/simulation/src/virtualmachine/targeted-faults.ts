import { VirtualMachine, VMDiskImage } from '@vmwright/operator';
import { API_SERVER } from '../apiserver/simulated.ts';
import type { Truth } from '../invariants/invariant.ts';
import { Snapshot, Volume } from '../kubevirt/kinds.ts';
import type { FaultInjector } from '../scenario/fault-injector.ts';
import type { Ref } from '../scenario/kubectl-user.ts';
import { byUid, controllerOf, isTerminating, onChange, phaseIn, textAt } from '../scenario/stored-objects.ts';
import { EPOCH_MS } from '../world/world.ts';
import { isSlotWrite } from './critical-moments.ts';
import { onOperatorCreate } from './operator-writes.ts';
import type { ThirdParties } from './third-parties.ts';
import type { User } from './user.ts';

/** Probabilities: one write or change in N triggers the fault. */
const FAULT_ONE_IN = 48;
const PAUSE_ONE_IN = 40;
const SLOT_PAUSE_ONE_IN = 8;
const LATE_MACHINE_ONE_IN = 3;
const LAST_MOMENT_ONE_IN = 3;
const LOST_SNAPSHOT_ONE_IN = 10;
const DELETE_ONE_IN = 10;
const ORPHAN_ONE_IN = 12;
/** Typical duration of a request and its response. */
const SOON_MS = 200;
/** Typical time from the start of an image's deletion until the operator deletes the data of the image. */
const DELETION_MS = 600;

/** Machines that do not exist unless a targeted fault creates them. */
const LATE: readonly [Ref, ...Ref[]] = [
  { namespace: 'blue', name: 'late' },
  { namespace: 'images', name: 'later' },
];

export interface TargetedFaultParts {
  readonly faultInjector: FaultInjector;
  readonly user: User;
  readonly thirdParties: ThirdParties;
}

/**
 * Injects faults at critical moments:
 * - The leader pauses while it acquires a slot.
 * - While an image is pruned or deleted, a user creates a machine that refers to the image.
 * - While an image is pruned, a user deletes the image.
 * - While a root disk is cloned, a snapshot vanishes, or a user deletes the machine.
 * - A user asks to keep a child that the operator is about to delete.
 */
export function injectTargetedFaults(truth: Truth, parts: TargetedFaultParts): void {
  const { faultInjector, user, thirdParties } = parts;
  const { server, traffic, simulation } = truth;
  const { choices, schedule, network } = simulation;
  const within = (ms: number, act: () => void) =>
    schedule.after(choices.pick(ms), () => {
      if (network.faulty) act();
    });
  traffic.onSend((sent) => {
    if (!network.faulty || sent.origin !== API_SERVER || sent.path.includes('/leases')) return;
    const [name = ''] = sent.sender.split('.');
    if (choices.oneIn(FAULT_ONE_IN)) within(SOON_MS, () => faultInjector.injectFault(name));
    if (sent.method === 'DELETE' && choices.oneIn(ORPHAN_ONE_IN)) user.orphanTerminating();
    if (choices.oneIn(isSlotWrite(sent) ? SLOT_PAUSE_ONE_IN : PAUSE_ONE_IN)) faultInjector.pause(name);
  });
  onChange(server, VMDiskImage, (before, after) => {
    if (!network.faulty || after === undefined) return;
    const { namespace = '', name } = after.metadata;
    const createLate = () => user.create(choices.one(LATE), { namespace, name });
    const isNewlyTerminating = isTerminating(after) && before !== undefined && !isTerminating(before);
    if ((isNewlyTerminating || isNewlyDeleting(before, after)) && choices.oneIn(LATE_MACHINE_ONE_IN))
      within(DELETION_MS, createLate);
    const pruneAt = textAt(after, 'status', 'pruneAt');
    if (pruneAt === undefined || pruneAt === textAt(before, 'status', 'pruneAt')) return;
    if (!choices.oneIn(LAST_MOMENT_ONE_IN)) return;
    const interfere = choices.one([createLate, createLate, () => user.deleteImage({ namespace, name })]);
    const ms = Date.parse(pruneAt) - EPOCH_MS - schedule.now;
    schedule.after(Math.max(ms - SOON_MS, 0), () => within(2 * SOON_MS + DELETION_MS, interfere));
  });
  onOperatorCreate(truth, Volume, (volume) => {
    const machine = byUid(server, VirtualMachine, controllerOf(volume));
    if (!network.faulty || machine === undefined) return;
    const { namespace = '', name } = machine.metadata;
    if (choices.oneIn(LOST_SNAPSHOT_ONE_IN)) within(SOON_MS, () => thirdParties.deleteChild(Snapshot));
    if (choices.oneIn(DELETE_ONE_IN)) within(SOON_MS, () => user.delete({ namespace, name }));
  });
}

function isNewlyDeleting(
  before: Parameters<typeof phaseIn>[0],
  after: Parameters<typeof phaseIn>[0],
): boolean {
  return phaseIn(after) === 'Deleting' && phaseIn(before) !== 'Deleting';
}
