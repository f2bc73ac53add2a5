import { VirtualMachine, VMDiskImage } from '@vmwright/operator';
import { ORPHAN } from '../apiserver/deletes.ts';
import type { StoredObject } from '../apiserver/object.ts';
import type { Invariant, Truth } from '../invariants/invariant.ts';
import { Claim, Instance, Machine, Secret, Snapshot, Volume } from '../kubevirt/kinds.ts';
import {
  byUid,
  controllerOf,
  isTerminating,
  keyOf,
  onChange,
  phaseIn,
  textAt,
} from '../scenario/stored-objects.ts';
import { isOrphaned, snapshotsIn } from './objects.ts';
import { onOperatorDelete } from './operator-writes.ts';

/** Children are deleted in order: the disk stays until KubeVirt has removed the machine. */
export const machineDeletedFirst: Invariant = {
  name: 'the machine is deleted before its disk',
  watch: (truth, violated) =>
    onOperatorDelete(truth, Volume, (volume) => {
      const machine = byUid(truth.server, VirtualMachine, controllerOf(volume));
      if (machine === undefined || !isTerminating(machine)) return;
      for (const each of truth.server.objects(Machine))
        if (controllerOf(each) === machine.metadata.uid && !isLate(each, machine))
          violated(`${keyOf(volume)} is deleted while the KubeVirt VirtualMachine ${keyOf(each)} exists`);
    }),
};

/**
 * An image or a machine is removed only after its children and their children are gone. If the deletion keeps the
 * children, the object is removed only after the children no longer name it as their owner. Exception: a late request
 * may create a child after the deletion was requested. The garbage collector removes this child.
 */
export const childrenDeletedFirst: Invariant = {
  name: 'children are deleted before their object',
  watch: (truth, violated) => {
    /**
     * Maps the UID of each DataVolume and machine to the UID of its owner. The entries of deleted objects are kept,
     * because a claim outlives its DataVolume.
     */
    const owners = new Map<string, string | undefined>();
    for (const kind of [Volume, Machine])
      onChange(truth.server, kind, (_, after) => {
        if (after !== undefined) owners.set(after.metadata.uid ?? '', controllerOf(after));
      });
    for (const kind of [VirtualMachine, VMDiskImage])
      onChange(truth.server, kind, (before, after) => {
        if (before === undefined || after !== undefined) return;
        // The operator reads claims from its cache. A claim that is missing there because of a stalled watch is left to
        // the garbage collector.
        const isStalled = truth.simulation.counts.of('stream stalled') > 0;
        for (const child of descendantsOf(truth, before.metadata.uid, owners))
          if (!(isStalled && child.kind === Claim.kind) && !isLate(child, before) && !isKept(child, before))
            violated(`${keyOf(before)} is gone, but its ${child.kind} ${keyOf(child)} exists`);
      });
  },
};

/** Whether a descendant is kept because its direct owner is kept, such as the claim of an orphaned DataVolume. */
function isKept(child: StoredObject, owner: StoredObject): boolean {
  return isOrphaned(owner) && controllerOf(child) !== owner.metadata.uid;
}

/**
 * After `--cascade=orphan`, the operator does not delete the children that existed when the deletion was requested: the
 * machine, the Secret, and the disk and snapshots that the status named. Exception: it may delete the children of an
 * image that is still referenced, until the phase of the image is Deleting. `Foreign` checks that children without an
 * owner are not changed or deleted.
 */
export const orphansAreKept: Invariant = {
  name: 'orphans are kept',
  watch: (truth, violated) => {
    const owners = new Map<string, string>();
    for (const kind of [VirtualMachine, VMDiskImage])
      onChange(truth.server, kind, (before, after) => {
        const { uid = '', finalizers = [] } = after?.metadata ?? {};
        if (after === undefined || !finalizers.includes(ORPHAN)) return;
        // Ignores a repeated deletion with `--cascade=orphan`: after the first deletion, the operator may already have
        // sent delete requests for the children.
        if (before === undefined || isTerminating(before)) return;
        const named = [textAt(after, 'status', 'dataVolume'), ...snapshotsIn(after)];
        for (const childKind of [Machine, Volume, Snapshot, Secret])
          for (const { kind: ofChild, metadata } of truth.server.objects(childKind))
            if (metadata.ownerReferences?.some((each) => each.uid === uid))
              if (named.includes(metadata.name) || ofChild === Machine.kind || ofChild === Secret.kind)
                owners.set(metadata.uid ?? '', uid);
      });
    for (const kind of [Machine, Volume, Snapshot, Secret])
      onOperatorDelete(truth, kind, (child) => {
        const owner = owners.get(child.metadata.uid ?? '');
        const image = byUid(truth.server, VMDiskImage, owner);
        const isMaintained = image !== undefined && phaseIn(image) !== 'Deleting';
        if (owner !== undefined && !isMaintained)
          violated(`${child.kind} ${keyOf(child)} is deleted although --cascade=orphan keeps it`);
      });
  },
};

function* descendantsOf(
  { server }: Truth,
  uid: string | undefined,
  owners: ReadonlyMap<string, string | undefined>,
): Generator<StoredObject> {
  for (const kind of [Machine, Instance, Volume, Claim, Snapshot, Secret])
    for (const object of server.objects(kind)) {
      const owner = controllerOf(object) ?? '';
      if (owner === uid || owners.get(owner) === uid) yield object;
    }
}

function isLate({ metadata }: StoredObject, { metadata: { deletionTimestamp = '' } }: StoredObject): boolean {
  return (metadata.creationTimestamp ?? '') >= deletionTimestamp;
}
