import { VirtualMachine, VMDiskImage } from '@vmwright/operator';
import type { StoredObject } from '../apiserver/object.ts';
import type { Invariant, Truth } from '../invariants/invariant.ts';
import { Claim, Instance, Machine, Secret, Snapshot, Volume } from '../kubevirt/kinds.ts';
import { byUid, controllerOf, isTerminating, keyOf, onChange } from '../scenario/stored-objects.ts';
import { isOrphaned } from './objects.ts';
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
 * An image or a machine is removed only when its children, and their children, are gone. A child that was created after the
 * deletion was requested came with a late request; the garbage collector removes it.
 */
export const childrenDeletedFirst: Invariant = {
  name: 'children are deleted before their object',
  watch: (truth, violated) => {
    /** UIDs of the owners of DataVolumes and machines, also of those that are gone: a claim outlives its DataVolume. */
    const owners = new Map<string, string | undefined>();
    for (const kind of [Volume, Machine])
      onChange(truth.server, kind, (_, after) => {
        if (after !== undefined) owners.set(after.metadata.uid ?? '', controllerOf(after));
      });
    for (const kind of [VirtualMachine, VMDiskImage])
      onChange(truth.server, kind, (before, after) => {
        if (before === undefined || after !== undefined || isOrphaned(before)) return;
        // The operator reads claims from its cache. One that a stalled watch did not show is left to the garbage collector.
        const isStalled = truth.simulation.counts.of('stream stalled') > 0;
        for (const child of descendantsOf(truth, before.metadata.uid, owners))
          if (!(isStalled && child.kind === Claim.kind) && !isLate(child, before))
            violated(`${keyOf(before)} is gone, but ${child.kind} ${keyOf(child)} exists`);
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
