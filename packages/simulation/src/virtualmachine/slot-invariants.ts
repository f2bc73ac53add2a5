import { VMDiskImage } from '@vmwright/operator';
import { fieldAt } from '../apiserver/json.ts';
import type { Invariant } from '../invariants/invariant.ts';
import { Volume } from '../kubevirt/kinds.ts';
import { byUid, controllerOf, onChange, phaseIn } from '../scenario/stored-objects.ts';
import { isOrphaned, isSlots, slotsIn } from './objects.ts';
import { controllerIn, onOperatorCreate, onOperatorSend } from './operator-writes.ts';

/** @param limit maximum number of images that are synced at the same time */
export function limitsSyncs(limit: number): Invariant {
  return {
    name: 'concurrent syncs are limited',
    watch: ({ server }, violated) =>
      server.listen((change) => {
        if (!isSlots(change)) return;
        const held = Object.keys(Object(fieldAt(change.after?.object, ['data']) ?? {}));
        if (held.length > limit) violated(`${held.join(', ')} hold slots, but the limit is ${limit}`);
      }),
    healed: function* ({ server }) {
      for (const uid of slotsIn(server)) {
        const image = byUid(server, VMDiskImage, uid);
        yield `${image?.metadata.name ?? 'an image that is gone'} (${uid}) holds a slot, phase ${phaseIn(image)}`;
      }
    },
  };
}

/**
 * An image is in the phase Syncing only while it holds a slot, and no image without a slot starts an import. Exception:
 * an image that is deleted with the policy Orphan may be Syncing without a slot. It releases the slot, because its disk
 * no longer belongs to the operator.
 */
export const syncsHoldSlots: Invariant = {
  name: 'an image that syncs holds a slot',
  watch: (truth, violated) => {
    const { server } = truth;
    onChange(server, VMDiskImage, (_, after) => {
      if (after === undefined || phaseIn(after) !== 'Syncing' || isOrphaned(after)) return;
      const { uid = '', name } = after.metadata;
      if (!slotsIn(server).includes(uid)) violated(`${name} (${uid}) is Syncing and holds no slot`);
    });
    server.listen((change) => {
      if (!isSlots(change)) return;
      const held = slotsIn(server);
      for (const uid of Object.keys(Object(fieldAt(change.before?.object, ['data']) ?? {}))) {
        const image = held.includes(uid) ? undefined : byUid(server, VMDiskImage, uid);
        if (image !== undefined && phaseIn(image) === 'Syncing' && !isOrphaned(image))
          violated(`${image.metadata.name} (${uid}) is Syncing and lost its slot`);
      }
    });
    onOperatorSend(truth, Volume, (body) => {
      const image = byUid(server, VMDiskImage, controllerIn(body));
      if (image === undefined) return;
      const { uid = '', name } = image.metadata;
      if (!slotsIn(server).includes(uid)) violated(`an import of ${name} (${uid}) is started without a slot`);
      if (phaseIn(image) !== 'Syncing')
        violated(`an import of ${name} is started in the phase ${phaseIn(image)}, before Syncing is stored`);
    });
  },
};

/**
 * The operator does not start an import of an image while another import of the image runs, no matter which replicas
 * send the requests. Exception: a create request may arrive late, after the operator gave up on it and started another
 * attempt. The operator deletes the DataVolume of the late request.
 */
export const oneImport: Invariant = {
  name: 'at most one import per image',
  watch: (truth, violated) => {
    const { server, simulation } = truth;
    const createdAt = new Map<string, number>();
    onOperatorCreate(truth, Volume, (created, sent) => {
      createdAt.set(created.metadata.uid ?? '', simulation.schedule.now);
      const uid = controllerOf(created);
      const image = byUid(server, VMDiskImage, uid);
      if (image === undefined) return;
      const others = server
        .objects(Volume)
        .filter(({ metadata }) => metadata.uid !== created.metadata.uid)
        .filter((each) => controllerOf(each) === uid && each.metadata.deletionTimestamp === undefined)
        .filter((each) => !['Succeeded', 'Failed'].includes(phaseIn(each) ?? ''))
        .filter(({ metadata }) => (createdAt.get(metadata.uid ?? '') ?? 0) < sent.at)
        .map(({ metadata }) => metadata.name)
        .toArray();
      if (others.length > 0)
        violated(`${image.metadata.name} is imported by ${[created.metadata.name, ...others].join(' and ')}`);
    });
  },
};
