import { VirtualMachine, VMDiskImage } from '@vmwright/operator';
import type { Truth } from '../invariants/invariant.ts';
import { Holder } from '../invariants/leaders.ts';
import { Machine, Volume } from '../kubevirt/kinds.ts';
import { LEASE } from '../scenario/observed-manager.ts';
import {
  byKey,
  byUid,
  conditionOf,
  controllerOf,
  isTerminating,
  onChange,
  phaseIn,
  textAt,
} from '../scenario/stored-objects.ts';
import type { Sent } from '../scenario/traffic.ts';
import { imageOf, snapshotsIn } from './objects.ts';
import { onOperatorCreate } from './operator-writes.ts';

/**
 * Critical moments. When many seeds are run, each moment must occur in at least one seed. Invariants count the moments
 * in the last two lines. This file counts the others.
 */
export const CRITICAL_MOMENTS = [
  'an image became Ready during the faults',
  'a machine became Ready during the faults',
  'leadership moved while an image was syncing',
  'leadership moved while a slot was in transit',
  'a slot write was rejected',
  'a write arrived after another replica became leader',
  'an image waited for a slot',
  'a machine was created for an image being deleted',
  'a machine was created for an image whose data was being deleted',
  'the deletion of an image was blocked',
  'two machines created the same image',
  'an image was synced again',
  'an image had two snapshots',
  'an import without progress was reported',
  'a machine was stuck',
  'a root disk was cloned again',
  'a name conflict was reported',
  'an address conflict was reported',
  'an image failure was reported by a machine',
  ...(['an image was pruned', 'the operator restarted a machine', 'an attempt failed'] as const),
  ...(['an attempt timed out', 'an image failed for good'] as const),
] as const;

type CriticalMoment = (typeof CRITICAL_MOMENTS)[number];
type Add = (what: CriticalMoment) => void;

/** Counts the moments in which a bug is most likely to violate an invariant. */
export function countCriticalMoments(truth: Truth): void {
  const add: Add = (what) => truth.simulation.counts.add(what);
  countLeaders(truth, add);
  countImages(truth, add);
  countMachines(truth, add);
}

/** Whether the request changes the ConfigMap with the sync slots, which limit the number of concurrent syncs. */
export function isSlotWrite({ path }: Sent): boolean {
  return path.includes('/configmaps');
}

function countLeaders({ server, traffic }: Truth, add: Add): void {
  const holder = new Holder({ server }, LEASE, (before) => {
    if (before === '') return;
    if (server.objects(VMDiskImage).some((image) => phaseIn(image) === 'Syncing'))
      add('leadership moved while an image was syncing');
    if (traffic.inFlight().some((sent) => isSlotWrite(sent) && before.startsWith(`${sent.sender}_`)))
      add('leadership moved while a slot was in transit');
  });
  traffic.onArrival((sent) => {
    if (sent.path.includes('/leases')) return;
    if (!holder.is(sent.sender)) add('a write arrived after another replica became leader');
  });
  let version = 0;
  traffic.onArrival((sent) => {
    if (isSlotWrite(sent)) version = server.resourceVersion;
  });
  traffic.onEnd((sent) => {
    if (isSlotWrite(sent) && sent.arrivedAt !== undefined && version === server.resourceVersion)
      add('a slot write was rejected');
  });
}

function countImages({ server, traffic, simulation }: Truth, add: Add): void {
  onChange(server, VMDiskImage, (before, after) => {
    if (after === undefined) return;
    const [was, is] = [phaseIn(before), phaseIn(after)];
    if (is === 'Ready' && was !== 'Ready' && simulation.network.faulty)
      add('an image became Ready during the faults');
    if (is === 'Queued' && was === 'Queued') add('an image waited for a slot');
    if (was === 'Ready' && (is === 'Queued' || is === 'Syncing')) add('an image was synced again');
    if (snapshotsIn(after).length > 1) add('an image had two snapshots');
    if (conditionOf(after, 'DeletionBlocked')?.status === 'True') add('the deletion of an image was blocked');
    if (conditionOf(after, 'Progressing')?.reason === 'NoProgress')
      add('an import without progress was reported');
  });
  traffic.onArrival(({ method, path, body = '{}' }) => {
    if (method !== 'POST' || !path.includes('/vmdiskimages')) return;
    const { metadata } = JSON.parse(body);
    if (byKey(server, VMDiskImage, `${metadata.namespace}/${metadata.name}`) !== undefined)
      add('two machines created the same image');
  });
}

function countMachines(truth: Truth, add: Add): void {
  const { server } = truth;
  onChange(server, VirtualMachine, (before, after) => {
    if (after === undefined) return;
    if (before === undefined) {
      const image = byKey(server, VMDiskImage, imageOf(after));
      if (image !== undefined && isTerminating(image)) {
        add('a machine was created for an image being deleted');
        if (phaseIn(image) === 'Deleting')
          add('a machine was created for an image whose data was being deleted');
      }
    }
    if (phaseIn(after) === 'Ready' && phaseIn(before) !== 'Ready' && truth.simulation.network.faulty)
      add('a machine became Ready during the faults');
    const reason = conditionOf(after, 'Ready')?.reason;
    if (reason === 'NameConflict') add('a name conflict was reported');
    if (reason === 'AddressConflict') add('an address conflict was reported');
    if (reason === 'ImageFailed') add('an image failure was reported by a machine');
  });
  onChange(server, Machine, (_, after) => {
    if (textAt(after, 'status', 'printableStatus') === 'ErrorPvcNotFound') add('a machine was stuck');
  });
  const cloned = new Set<string>();
  onOperatorCreate(truth, Volume, (volume) => {
    const uid = controllerOf(volume) ?? '';
    if (byUid(server, VirtualMachine, uid) === undefined) return;
    if (cloned.has(uid)) add('a root disk was cloned again');
    cloned.add(uid);
  });
}
