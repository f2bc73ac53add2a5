import type { StoredObject } from '../apiserver/object.ts';
import type { Truth } from '../invariants/invariant.ts';
import { Holder } from '../invariants/leaders.ts';
import { objectOf } from '../invariants/machines.ts';
import { LEASE } from '../scenario/observed-manager.ts';
import type { Sent } from '../scenario/traffic.ts';
import type { Vcenter } from '../vcenter/vcenter.ts';
import { folderOwnerOf, foldersIn, machinesOf, ownerOf, templateOf } from './external-resources.ts';
import { isDeleted, isPaused, onGroupChange, readyOf, slotOf, slotsOf, wantedIn } from './objects.ts';
import { isClone, requestedOwner } from './requests.ts';

/**
 * Critical moments that are counted here and in the vCenter model. When many seeds are run, each moment must occur in
 * at least one seed.
 */
export const CRITICAL_MOMENTS = [
  'a task failed',
  'an update was late',
  'an answer was repeated',
  'a version was forgotten',
  'a clone completed after its group was gone',
  'a clone completed for a group being deleted',
  'a clone completed after its slot was dropped',
  'a clone request arrived after its sender timed out',
  'a clone was requested twice',
  'the response to a clone was lost',
  'a clone failed because its machine already existed',
  'a session was killed while a clone ran',
  'a folder was gone when a clone completed',
  'a group was scaled in while it was cloning',
  'a group was deleted while it was cloning',
  'leadership moved to another replica',
  'leadership was lost while a task ran',
  'a rolling update was interrupted by a fail-over',
  'a group was re-created under the same name',
  'an orphaned machine was removed',
  'the folder of a deleted group was removed or taken over',
  'a folder was kept because of a foreign machine',
  'a folder was created after its group was gone',
  'a folder without an owner label was removed',
  'a machine was orphaned',
  'a machine was resized',
  'a machine was replaced by one from another template',
  'a group was paused',
] as const;

/** Names of the counters of reported problems, by the reason in the Ready condition. */
export const REPORTED = {
  FolderTaken: 'FolderTaken was reported',
  NotFound: 'NotFound was reported',
  VcenterUnreachable: 'VcenterUnreachable was reported',
  VcenterRefused: 'VcenterRefused was reported',
} as const;

type CriticalMoment = (typeof CRITICAL_MOMENTS)[number] | (typeof REPORTED)[keyof typeof REPORTED];
type Add = (what: CriticalMoment) => void;

/** Counts the moments in which a bug is most likely to violate an invariant. */
export function countCriticalMoments(truth: Truth, vcenter: Vcenter): void {
  const add: Add = (what) => truth.simulation.counts.add(what);
  const clones = new RunningClones(truth, vcenter);
  countClones(truth, vcenter, clones, add);
  countGroups(truth, vcenter, clones, add);
  countMachines(truth, vcenter, add);
  countFolders(truth, vcenter, add);
}

/** Tracks running clones and their groups. */
class RunningClones {
  readonly #running = new Map<string, string>();

  constructor({ traffic }: Truth, { tasks }: Vcenter) {
    let arriving: Sent | undefined;
    traffic.onArrival((sent) => {
      arriving = sent;
    });
    tasks.onBegin(({ ref, what }) => {
      if (what === 'CloneVM' && arriving !== undefined && isClone(arriving))
        this.#running.set(ref.value, requestedOwner(arriving).uid);
    });
    tasks.onEnd(({ ref }) => this.#running.delete(ref.value));
  }

  get any(): boolean {
    return this.#running.size > 0;
  }

  for(uid: string | undefined): boolean {
    return this.#running.values().some((each) => each === uid);
  }
}

function countClones(truth: Truth, vcenter: Vcenter, clones: RunningClones, add: Add): void {
  const { traffic } = truth;
  const requested = new Set<string>();
  let sessions = 0;
  traffic.onSend((sent) => {
    if (!isClone(sent)) return;
    const { uid, slot } = requestedOwner(sent);
    if (requested.has(`${uid}/${slot}`)) add('a clone was requested twice');
    requested.add(`${uid}/${slot}`);
  });
  traffic.onArrival((sent) => {
    if (isClone(sent) && sent.outcome === 'failed') add('a clone request arrived after its sender timed out');
    const now = vcenter.sessions.length;
    if (now < sessions && clones.any) add('a session was killed while a clone ran');
    sessions = now;
  });
  traffic.onEnd((sent) => {
    if (isClone(sent) && sent.outcome === 'failed' && sent.arrivedAt !== undefined)
      add('the response to a clone was lost');
  });
  vcenter.tasks.onEnd(({ what, fault }) => {
    if (what !== 'CloneVM' || fault === undefined) return;
    if (fault.type === 'DuplicateName') add('a clone failed because its machine already existed');
    if (fault.type === 'ManagedObjectNotFound') add('a folder was gone when a clone completed');
  });
}

function countGroups(truth: Truth, vcenter: Vcenter, clones: RunningClones, add: Add): void {
  const gone = new Set<string>();
  new Holder(truth, LEASE, (before) => {
    if (before === '') return;
    add('leadership moved to another replica');
    for (const object of truth.server.objects(truth.kind)) {
      if (slotsOf(object).some(({ task }) => task !== undefined)) add('leadership was lost while a task ran');
      if (isRolling(object, vcenter)) add('a rolling update was interrupted by a fail-over');
    }
  });
  onGroupChange(truth, (before, after) => {
    if (after === undefined) {
      if (before !== undefined) gone.add(before.metadata.name);
      return;
    }
    if (before === undefined) {
      if (gone.has(after.metadata.name)) add('a group was re-created under the same name');
      return;
    }
    const { uid } = after.metadata;
    if (isPaused(after) && !isPaused(before)) add('a group was paused');
    if (isDeleted(after) && !isDeleted(before) && clones.for(uid))
      add('a group was deleted while it was cloning');
    if (wantedIn(after).replicas < wantedIn(before).replicas && clones.for(uid))
      add('a group was scaled in while it was cloning');
    const { reason } = readyOf(after);
    if (reason !== readyOf(before).reason && isReported(reason)) add(REPORTED[reason]);
  });
}

function countMachines(truth: Truth, vcenter: Vcenter, add: Add): void {
  const templates = new Map<string, string>();
  vcenter.machines.listen(({ before, after, cause }) => {
    const owner = (after && ownerOf(after)) ?? (before && ownerOf(before));
    if (owner === undefined || cause !== 'request') return;
    const object = objectOf(truth, owner.uid);
    if (before === undefined && after !== undefined) {
      if (object === undefined) add('a clone completed after its group was gone');
      else if (isDeleted(object)) add('a clone completed for a group being deleted');
      else if (slotOf(object, owner.slot)?.isTerminating !== false)
        add('a clone completed after its slot was dropped');
      const was = templates.get(owner.uid);
      if (was !== undefined && was !== templateOf(after))
        add('a machine was replaced by one from another template');
      templates.set(owner.uid, templateOf(after));
    }
    if (before !== undefined && after === undefined && object === undefined)
      add('an orphaned machine was removed');
    if (before !== undefined && after !== undefined) {
      if (ownerOf(after) === undefined) add('a machine was orphaned');
      if (before.cpus !== after.cpus || before.memoryMb !== after.memoryMb) add('a machine was resized');
    }
  });
}

function countFolders(truth: Truth, vcenter: Vcenter, add: Add): void {
  const owners = new Map<string, string>();
  const unlabelled = new Set<string>();
  vcenter.folders.listen(({ id, what, cause }) => {
    if (cause !== 'request') return;
    const created = what === 'made' ? foldersIn(vcenter).find(({ ref }) => ref.value === id) : undefined;
    const creator = created && folderOwnerOf(vcenter, created);
    if (creator !== undefined && objectOf(truth, creator) === undefined)
      add('a folder was created after its group was gone');
    if (what === 'made') unlabelled.add(id);
    if (what === 'removed' && unlabelled.has(id)) add('a folder without an owner label was removed');
    if (what === 'marked') unlabelled.delete(id);
    const was = owners.get(id);
    if (what === 'removed' && was !== undefined && objectOf(truth, was) === undefined)
      add('the folder of a deleted group was removed or taken over');
    const folder = what === 'marked' ? foldersIn(vcenter).find(({ ref }) => ref.value === id) : undefined;
    if (folder === undefined) return;
    const owner = folderOwnerOf(vcenter, folder);
    if (owner === undefined) {
      owners.delete(id);
      if (folder.children.size > 0) add('a folder was kept because of a foreign machine');
      return;
    }
    if (was !== undefined && was !== owner) add('the folder of a deleted group was removed or taken over');
    owners.set(id, owner);
  });
}

function isRolling(object: StoredObject, vcenter: Vcenter): boolean {
  const { template, isRolling: follows } = wantedIn(object);
  const machines = machinesOf(vcenter, object.metadata.uid ?? '');
  const old = machines.filter((machine) => templateOf(machine) !== template).length;
  return follows && old > 0 && old < machines.length;
}

function isReported(reason: string | undefined): reason is keyof typeof REPORTED {
  return reason !== undefined && Object.hasOwn(REPORTED, reason);
}
