import type { EventInput } from '@vmwright/runtime';
import { conditionOf, keyOf } from '@vmwright/runtime';
import type { DataVolume, PersistentVolumeClaim } from '../kubevirt/kinds.ts';
import { controllerOf } from '../kubevirt/ownership.ts';
import type { Action } from './actions.ts';
import { bindsImmediately, shouldRun, usesVolume, volumeDraft } from './children.ts';
import type { VirtualMachineReason } from './conditions.ts';
import { claimLost } from './diagnosis.ts';
import { isVolumeName, nextVolumeName } from './identity.ts';
import type { ImagePlan } from './image.ts';
import { currentVolumeName, type Observed } from './observe.ts';
import type { PlannedCondition, Problem } from './problem.ts';
import { planResize } from './resize.ts';
import type { VirtualMachine } from './resource.ts';
import { chooseSnapshot, hasSnapshot } from './snapshot-choice.ts';

/** Plan for the root disk of a VirtualMachine. */
export interface DiskPlan {
  /** Name of the DataVolume. It is stored, with the name of the source snapshot, before the DataVolume is created. */
  readonly dataVolume?: string | undefined;
  readonly snapshot?: string | undefined;
  /**
   * - `ready`: the disk is usable
   * - `cloning`: the disk is not cloned yet, or its claim or DataVolume is lost or being deleted
   * - `missing`: the disk cannot be created yet
   */
  readonly state: 'ready' | 'cloning' | 'missing';
  /** Condition VolumeReady. */
  readonly condition: PlannedCondition;
  readonly problem?: Problem | undefined;
  readonly actions: readonly Action[];
  readonly events: readonly EventInput[];
  readonly requeueAfterMs?: number;
}

/**
 * Requeue interval while every snapshot has its maximum number of clones. This number includes clones that other
 * reconciles have reserved. If such a reconcile fails to store the snapshot that it chose, its reservation ends. No
 * watch event reports the end of the reservation, because no object changes.
 */
const FREE_SNAPSHOT_MS = 30_000;

/**
 * Requeue interval for a claim without its DataVolume. The cache has only claims with the label of CDI. The deletion of
 * any other claim causes no event.
 */
const CLAIM_MS = 30_000;

/**
 * Plans the root disk. The disk is cloned from a snapshot of the image, and cloned again if it is lost. No plan deletes
 * a DataVolume that succeeded, because it contains the data of the machine.
 */
export function planDisk(vm: VirtualMachine, observed: Observed, image: ImagePlan): DiskPlan {
  const { volumes, machine, claim, foreignVolume } = observed;
  const dataVolume = currentVolumeName(vm, volumes, machine);
  const volume = volumes.find(({ metadata }) => metadata.name === dataVolume);
  const where = keyOf({ namespace: vm.metadata.namespace, name: dataVolume });
  if (foreignVolume !== undefined)
    return missing(vm, {
      phase: 'Failed',
      reason: 'NameConflict',
      message: `The DataVolume ${where} exists and was not created for this VirtualMachine. Delete that DataVolume, or create the VirtualMachine under another name`,
    });
  if (volume !== undefined) {
    const snapshot = vm.status?.snapshot ?? volume.spec?.source?.snapshot?.name;
    if (volume.status?.phase === 'Succeeded') {
      if (claim === undefined) return { ...lost(claimLost(vm)), dataVolume, snapshot };
      const { condition, actions, events } = planResize(vm, observed);
      const cleanUp = deleteStrays(vm, volumes, dataVolume);
      return { state: 'ready', dataVolume, snapshot, condition, actions: [...actions, ...cleanUp], events };
    }
    const isSourceGone =
      image.usable !== undefined && snapshot !== undefined && !hasSnapshot(image.usable, snapshot);
    if (!isSourceGone || volume.metadata.deletionTimestamp !== undefined)
      return { ...cloning(vm, volume, where), dataVolume, snapshot };
    // Another disk is cloned only after this DataVolume is deleted. If its clone succeeds before the deletion, the
    // operator uses this disk. So no unused disk remains.
    return {
      ...cloning(vm, volume, where),
      dataVolume,
      snapshot,
      actions: [deletionOf(volume, 'the snapshot that it is cloned from is gone')],
    };
  }
  // The data is in the claim, so another disk may replace the claim only once the claim is being deleted.
  if (claim !== undefined && claim.metadata.deletionTimestamp === undefined)
    return { ...withoutVolume(vm, observed, claim), dataVolume, snapshot: vm.status?.snapshot };
  // The KubeVirt VirtualMachine and the claim are created after the DataVolume. So if one of them exists, the
  // DataVolume has existed and was deleted.
  const isLost = claim !== undefined || usesVolume(machine, dataVolume);
  if (!isLost) return planClone(vm, observed, image, dataVolume, undefined);
  return planClone(vm, observed, image, nextVolumeName(vm, dataVolume), {
    type: 'Warning',
    reason: 'VolumeLost',
    note: `The DataVolume ${where} of the root disk was deleted; cloning a new disk from the image. The data of the old disk is lost when the machine restarts`,
  });
}

/**
 * Plans a root disk that has a claim but no DataVolume. This happens after a deletion with `--cascade=orphan`, or after
 * a restore from a backup. KubeVirt then uses the claim with the name of the DataVolume.
 */
function withoutVolume(vm: VirtualMachine, observed: Observed, claim: PersistentVolumeClaim): DiskPlan {
  const where = keyOf(claim.metadata);
  const wait = (reason: VirtualMachineReason, message: string): DiskPlan => ({
    ...lost({ phase: 'Provisioning', reason, message }),
    requeueAfterMs: CLAIM_MS,
  });
  // A claim with a controller was not orphaned, so the garbage collector deletes it after its DataVolume.
  if (controllerOf(claim) !== undefined)
    return wait(
      'VolumeDeleting',
      `The DataVolume ${where} was deleted, and its PersistentVolumeClaim is being deleted; a new disk is cloned afterwards`,
    );
  if (claim.status?.phase !== 'Bound')
    return wait(
      'VolumeWithoutDataVolume',
      `The PersistentVolumeClaim ${where} of the root disk exists without its DataVolume and is not Bound. The operator does not replace the claim; delete it to clone a new disk`,
    );
  const { actions, events } = planResize(vm, observed);
  const message = `The PersistentVolumeClaim ${where} exists and is used, although its DataVolume was deleted; the operator does not replace the claim`;
  const condition = { status: 'True', reason: 'VolumeWithoutDataVolume', message } as const;
  return { state: 'ready', condition, actions, events };
}

/** Plans a new clone under a name that no DataVolume and no claim has. */
function planClone(
  vm: VirtualMachine,
  { volumes, clones }: Observed,
  image: ImagePlan,
  name: string,
  event: EventInput | undefined,
): DiskPlan {
  const { usable } = image;
  if (usable === undefined)
    return missing(
      vm,
      image.problem ?? { phase: 'Provisioning', reason: 'ImageNotReady', message: image.condition.message },
    );
  const stored = vm.status?.snapshot;
  const isKept = stored !== undefined && hasSnapshot(usable, stored);
  const snapshot = isKept ? stored : chooseSnapshot(usable, clones);
  const source = keyOf(usable.metadata);
  if (snapshot === undefined)
    return {
      ...missing(vm, {
        phase: 'Provisioning',
        reason: 'NoFreeSnapshot',
        message: `Every snapshot of the VMDiskImage ${source} has its maximum number of clones (maxClones); waiting for another snapshot`,
      }),
      requeueAfterMs: FREE_SNAPSHOT_MS,
    };
  const where = keyOf({ namespace: vm.metadata.namespace, name });
  const condition = {
    status: 'False',
    reason: 'Cloning',
    message: `The DataVolume ${where} is being cloned from the image`,
  } as const;
  return {
    state: 'cloning',
    dataVolume: name,
    snapshot,
    condition,
    actions: [
      { type: 'createVolume', volume: volumeDraft(vm, usable, snapshot, name) },
      ...deleteStrays(vm, volumes, name),
    ],
    events: event === undefined ? [] : [event],
  };
}

/** Deletes DataVolumes that were replaced before their clone succeeded. */
function deleteStrays(
  vm: VirtualMachine,
  volumes: readonly DataVolume[],
  current: string,
): readonly Action[] {
  return volumes
    .filter(({ metadata, status }) => {
      const isReplaced = metadata.name !== current && isVolumeName(vm, metadata.name);
      return isReplaced && status?.phase !== 'Succeeded' && metadata.deletionTimestamp === undefined;
    })
    .map((volume) => deletionOf(volume, 'it was replaced by another disk before its clone succeeded'));
}

function deletionOf({ metadata: { name, uid, resourceVersion } }: DataVolume, reason: string): Action {
  return { type: 'deleteVolume', name, uid, resourceVersion, reason };
}

function cloning(vm: VirtualMachine, volume: DataVolume, where: string): DiskPlan {
  const { status, metadata } = volume;
  const wait = (reason: VirtualMachineReason, message: string, problem?: Problem): DiskPlan => ({
    state: 'cloning',
    condition: { status: 'False', reason, message },
    problem,
    actions: [],
    events: [],
  });
  const fail = (reason: VirtualMachineReason, message: string) =>
    wait(reason, message, { phase: 'Provisioning', reason, message });
  if (metadata.deletionTimestamp !== undefined)
    return fail(
      'VolumeDeleting',
      `The DataVolume ${where} is being deleted; a new disk is cloned when it is gone`,
    );
  const { phase, conditions } = status ?? {};
  const causes = ['Running', 'Bound', 'Ready']
    .map((type) => conditionOf(conditions, type))
    .filter((condition) => condition?.status === 'False' && (condition.message ?? '') !== '');
  const [cause] = causes;
  if (phase === 'Failed')
    return fail(
      'CloneFailed',
      `The clone of the DataVolume ${where} has failed (${cause?.message ?? 'no cause given'}). Delete the DataVolume to try again`,
    );
  if (cause !== undefined && ERRORS.has(cause.reason ?? ''))
    return fail('CloneFailing', `The DataVolume ${where} is not cloned: ${cause.message}`);
  const isWaiting = phase === 'WaitForFirstConsumer' || phase === 'PendingPopulation';
  if (isWaiting && !shouldRun(vm) && !bindsImmediately(volume))
    return fail(
      'WaitForFirstConsumer',
      `The DataVolume ${where} was created before ignoreOnDeploy was set, and CDI clones it only when the machine is scheduled. Set ignoreOnDeploy to false, or delete the DataVolume: the operator then clones another one immediately`,
    );
  if (isWaiting && !bindsImmediately(volume))
    return wait('WaitForFirstConsumer', `The DataVolume ${where} is cloned when the machine is scheduled`);
  return wait('Cloning', `The DataVolume ${where} is being cloned from the image`);
}

/** Reasons of a DataVolume's conditions that report an error rather than progress. */
const ERRORS: ReadonlySet<string> = new Set([
  ...['Error', 'ErrClaimNotValid', 'ErrExceededQuota', 'CloneValidationFailed', 'CloneWithoutSource'],
  ...['ImagePullFailed', 'ClaimLost', 'ErrUnableToClone', 'IncompatibleVolumeModes'],
]);

/** Returns the plan for a disk of which either the DataVolume or the claim is missing. */
function lost(problem: Problem): DiskPlan {
  const { reason, message } = problem;
  return {
    state: 'cloning',
    condition: { status: 'False', reason, message },
    problem,
    actions: [],
    events: [],
  };
}

/**
 * Returns the plan for a disk that cannot be created yet. Keeps the stored names, because they may refer to a lost
 * disk.
 */
function missing({ status }: VirtualMachine, problem: Problem): DiskPlan {
  const { reason, message } = problem;
  const { snapshot, dataVolume } = status ?? {};
  return {
    state: 'missing',
    snapshot,
    dataVolume,
    condition: { status: 'False', reason, message },
    problem,
    actions: [],
    events: [],
  };
}
