import { VirtualMachine, VMDiskImage } from '@vmwright/operator';
import { FOREGROUND } from '../apiserver/deletes.ts';
import { same } from '../apiserver/json.ts';
import type { StoredObject } from '../apiserver/object.ts';
import type { Invariant, Truth } from '../invariants/invariant.ts';
import { Snapshot, Volume } from '../kubevirt/kinds.ts';
import {
  byUid,
  controllerOf,
  find,
  keyOf,
  listAt,
  numberAt,
  onChange,
  phaseIn,
  textAt,
} from '../scenario/stored-objects.ts';
import { EPOCH_MS } from '../world/world.ts';
import { imageOf, snapshotsIn } from './objects.ts';
import { LiveLists, onOperatorCreate, onOperatorDelete } from './operator-writes.ts';
import { machinesNaming, type References } from './references.ts';

/** Maximum clock skew of a replica. */
export const SKEW_MS = 5_000;

/** Returns the maximum difference between the clocks of two replicas, in milliseconds. */
export function clockError({ simulation: { counts } }: Truth): number {
  return counts.of('a clock jumped') > 0 ? 2 * SKEW_MS : 0;
}

/**
 * The operator does not delete the data of a Ready image. In the phase Deleting, it deletes the data only if every
 * VirtualMachine that names the image was created after this phase was stored. Such a VirtualMachine waits until the
 * image is gone. Foreground deletions are not checked, because there the garbage collector deletes the data.
 */
export const dataKeptWhileReferenced: Invariant = {
  name: 'data of a referenced image is kept',
  watch: (truth, violated) => {
    const { server } = truth;
    /** Names of the children in the status of a Ready image, by UID of the image. */
    const published = new Map<string, ReadonlySet<string>>();
    const deletingSince = new Map<string, number>();
    const inForeground = new Set<string>();
    const created = new Map<string, number>();
    onChange(server, VirtualMachine, (before, after, { number }) => {
      if (before === undefined && after !== undefined) created.set(after.metadata.uid ?? '', number);
    });
    onChange(server, VMDiskImage, (before, after, { number }) => {
      const { uid = '' } = after?.metadata ?? {};
      if (after === undefined) return;
      if (phaseIn(after) === 'Ready')
        published.set(uid, new Set([...snapshotsIn(after), textAt(after, 'status', 'dataVolume') ?? '']));
      if (phaseIn(after) === 'Deleting' && phaseIn(before) !== 'Deleting') deletingSince.set(uid, number);
      if (listAt(after, 'metadata', 'finalizers').includes(FOREGROUND)) inForeground.add(uid);
    });
    const check = (child: StoredObject) => {
      const uid = controllerOf(child) ?? '';
      const image = byUid(server, VMDiskImage, uid);
      if (image === undefined || !published.get(uid)?.has(child.metadata.name)) return;
      const what = `${child.kind} ${child.metadata.name} of ${keyOf(image)}`;
      if (phaseIn(image) === 'Ready') violated(`${what} is deleted, but the image is Ready`);
      // In phases other than Ready and Deleting, the operator may delete the child: a part of the data was lost, so the
      // image is synced again.
      if (phaseIn(image) !== 'Deleting' || inForeground.has(uid)) return;
      for (const machine of machinesNaming(server, keyOf(image)))
        if (
          (created.get(machine.metadata.uid ?? '') ?? 0) <
          (deletingSince.get(uid) ?? Number.POSITIVE_INFINITY)
        )
          violated(`${what} is deleted, but ${keyOf(machine)} names the image`);
    };
    onOperatorDelete(truth, Snapshot, check);
    onOperatorDelete(truth, Volume, check);
  },
};

/**
 * The operator prunes an image only if the image is Ready and `pruneAt` has passed. After `pruneAt`, the operator must
 * also have listed the VirtualMachines from etcd, and the list must contain no reference to the image.
 */
export const prunedOnlyWhenUnreferenced: Invariant = {
  name: 'an image is pruned only when it is unreferenced',
  watch: (truth, violated) => {
    const { server, simulation } = truth;
    const lists = new LiveLists(truth);
    const created = new Map<string, number>();
    onChange(server, VirtualMachine, (before, after) => {
      if (before === undefined && after !== undefined)
        created.set(after.metadata.uid ?? '', simulation.schedule.now);
    });
    onOperatorDelete(truth, VMDiskImage, (image, sent) => {
      const key = keyOf(image);
      simulation.counts.add('an image was pruned');
      if (phaseIn(image) !== 'Ready') return violated(`${key} is pruned in the phase ${phaseIn(image)}`);
      const pruneAt = Date.parse(textAt(image, 'status', 'pruneAt') ?? '') - EPOCH_MS;
      if (!(sent.at >= pruneAt - clockError(truth)))
        return violated(`${key} is pruned at ${sent.at} ms, before ${pruneAt} ms`);
      const listedAt = lists.firstAfter(sent.sender, pruneAt - clockError(truth));
      if (listedAt === undefined || listedAt > sent.at)
        return violated(`${key} is pruned without a list of the VirtualMachines after pruneAt`);
      for (const machine of machinesNaming(server, key))
        if ((created.get(machine.metadata.uid ?? '') ?? 0) < listedAt)
          violated(`${key} is pruned, but ${keyOf(machine)} names it`);
    });
  },
};

/** A snapshot is taken only of an import that has succeeded. */
export const snapshotAfterImport: Invariant = {
  name: 'a snapshot is taken after the import',
  watch: (truth, violated) => {
    const succeeded = new Set<string>();
    onChange(truth.server, Volume, (_, after) => {
      if (after !== undefined && phaseIn(after) === 'Succeeded') succeeded.add(keyOf(after));
    });
    onOperatorCreate(truth, Snapshot, (snapshot) => {
      const source = `${snapshot.metadata.namespace}/${textAt(snapshot, 'spec', 'source', 'persistentVolumeClaimName')}`;
      if (!succeeded.has(source)) violated(`${keyOf(snapshot)} is taken of ${source}, which is not imported`);
    });
  },
};

/** An image becomes Ready only if its status lists a snapshot, and each listed snapshot has been ready to use. */
export const readyHasData: Invariant = {
  name: 'a Ready image has data',
  watch: ({ server }, violated) => {
    const usable = new Set<string>();
    onChange(server, Snapshot, (_, after) => {
      if (after !== undefined && JSON.stringify(after.status)?.includes('"readyToUse":true'))
        usable.add(keyOf(after));
    });
    onChange(server, VMDiskImage, (before, after) => {
      if (after === undefined || phaseIn(after) !== 'Ready' || phaseIn(before) === 'Ready') return;
      const snapshots = snapshotsIn(after);
      const unknown = snapshots.filter((name) => !usable.has(`${after.metadata.namespace}/${name}`));
      if (snapshots.length === 0) violated(`${keyOf(after)} is Ready without a snapshot`);
      if (unknown.length > 0)
        violated(`${keyOf(after)} is Ready with ${unknown.join(', ')}, never ready to use`);
    });
  },
};

/** An image that is created from a template has no owner, because several machines may use it. */
export const templatesCreateSharedImages: Invariant = {
  name: 'images have no owner',
  watch: (truth, violated) =>
    onOperatorCreate(truth, VMDiskImage, (image) => {
      const [owner] = image.metadata.ownerReferences ?? [];
      if (owner !== undefined) violated(`${keyOf(image)} is owned by ${owner.kind} ${owner.name}`);
    }),
};

/** At most `maxClones` machines have the same snapshot in their status. */
export const respectsMaxClones: Invariant = {
  name: 'maxClones is respected',
  watch: ({ server, traffic }, violated) =>
    onChange(server, VirtualMachine, (before, after) => {
      const snapshot = textAt(after, 'status', 'snapshot');
      if (after === undefined || snapshot === undefined || traffic.arriving === undefined) return;
      if (snapshot === textAt(before, 'status', 'snapshot')) return;
      const [namespace = '', name = ''] = imageOf(after).split('/');
      const most = numberAt(find(server, VMDiskImage, namespace, name), 'spec', 'maxClones');
      const clones = machinesNaming(server, imageOf(after))
        .filter((each) => textAt(each, 'status', 'snapshot') === snapshot)
        .map(keyOf);
      if (most !== undefined && clones.length > most)
        violated(`${snapshot} has ${clones.length} clones (${clones.join(', ')}), but maxClones is ${most}`);
    }),
};

/** The status of each image lists exactly the references that the stored objects contain. */
export function referencesAreCounted(references: References): Invariant {
  return {
    name: 'references are counted',
    healed: function* ({ server }) {
      for (const image of server.objects(VMDiskImage)) {
        const expected = references.of(image);
        const count = numberAt(image, 'status', 'references') ?? 0;
        const listed = listAt(image, 'status', 'referencedBy');
        if (count !== expected.length || !same(listed, expected))
          yield `${keyOf(image)} has ${count} references (${listed.join(', ')}) instead of ${expected.join(', ') || 'none'}`;
      }
    },
  };
}
