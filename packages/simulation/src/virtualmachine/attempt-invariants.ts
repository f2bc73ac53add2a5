import { VMDiskImage } from '@vmwright/operator';
import type { ApiServer } from '../apiserver/api-server.ts';
import type { StoredObject } from '../apiserver/object.ts';
import type { Invariant } from '../invariants/invariant.ts';
import { restartsOf } from '../kubevirt/cdi.ts';
import { Claim, Snapshot, Volume } from '../kubevirt/kinds.ts';
import {
  byUid,
  controllerOf,
  find,
  isOf,
  isTerminating,
  keyOf,
  numberAt,
  onChange,
  phaseIn,
  textAt,
} from '../scenario/stored-objects.ts';
import { EPOCH_MS } from '../world/world.ts';
import { clockError } from './image-invariants.ts';
import { isSlots, RETRY, slotsIn } from './objects.ts';
import { SYNCS } from './program.ts';

/** The current attempt to sync an image: to import its disk and take a snapshot. */
interface Attempt {
  /** Start of the attempt according to the status, in virtual milliseconds. */
  readonly startedAt: number;
  /** First failure of the attempt; undefined if there was none. */
  problem: string | undefined;
}

/** Maximum rounding error of the times in statuses, which have a resolution of one second. */
const ROUNDING_MS = 1_000;

/**
 * An attempt to sync an image fails only for one of these reasons:
 * - Its import or snapshot failed, vanished or was orphaned.
 * - The user changed the image.
 * - The timeout of this attempt, or of all attempts together, expired.
 *
 * Sync slots limit the number of images that are synced at the same time. An attempt and its timeout start only when
 * the image has a slot, so the time that the image waits for a slot is not included.
 */
export const attemptsFailForAReason: Invariant = {
  name: 'an attempt fails only for a known cause',
  watch: (truth, violated) => {
    const { server, simulation } = truth;
    const { schedule, counts } = simulation;
    const attempts = new Map<string, Attempt>();
    const firstAt = new Map<string, number>();
    const slotAt = new Map<string, number>();
    server.listen((change) => {
      if (!isSlots(change)) return;
      const held = slotsIn(server);
      for (const uid of slotAt.keys()) if (!held.includes(uid)) slotAt.delete(uid);
      for (const uid of held) if (!slotAt.has(uid)) slotAt.set(uid, schedule.now);
    });
    server.listen(({ resource, before, after }) => {
      const object = (after ?? before)?.object;
      if (object === undefined) return;
      const kind = [Volume, Claim, Snapshot].find((each) => isOf(resource, each));
      const attempt = kind && attempts.get(imageUidOf(server, object) ?? '');
      if (attempt !== undefined) attempt.problem ??= problemOf(object, after === undefined);
      const owner = before && controllerOf(before.object);
      const orphaned = owner !== controllerOf(object) ? attempts.get(owner ?? '') : undefined;
      if (orphaned !== undefined) orphaned.problem ??= 'a child was orphaned (--cascade=orphan)';
    });
    onChange(server, VMDiskImage, (before, after) => {
      if (after === undefined) return;
      const { uid = '', generation, annotations } = after.metadata;
      const attempt = attempts.get(uid);
      const isChanged =
        before?.metadata.generation !== generation ||
        before?.metadata.annotations?.[RETRY] !== annotations?.[RETRY];
      if (attempt !== undefined && isChanged) attempt.problem ??= 'the image was changed';
      const [was, is] = [phaseIn(before), phaseIn(after)];
      if (is === 'Syncing' && (was !== 'Syncing' || numberOf(before) !== numberOf(after))) {
        const startedAt = Date.parse(textAt(after, 'status', 'attempt', 'startedAt') ?? '') - EPOCH_MS;
        // The attempt may reuse the disk of an earlier attempt, and a stalled watch may show the operator an older
        // state of that disk. So a problem that the disk already has is a valid reason for this attempt to fail.
        const disk = server.objects(Volume).find((each) => controllerOf(each) === uid);
        const claim = disk && find(server, Claim, disk.metadata.namespace, disk.metadata.name);
        const isReused = textAt(after, 'status', 'dataVolume') !== undefined;
        const lost =
          (disk !== undefined || isReused) && claim === undefined ? 'the disk was deleted' : undefined;
        attempts.set(uid, { startedAt, problem: lost ?? (disk && problemOf(disk, false)) });
        if (!firstAt.has(uid)) firstAt.set(uid, startedAt);
        if (!(startedAt >= (slotAt.get(uid) ?? 0) - clockError(truth) - ROUNDING_MS))
          violated(`the attempt of ${keyOf(after)} starts at ${startedAt} ms, before it got a slot`);
      }
      if (is === 'Ready') firstAt.delete(uid);
      if (was !== 'Syncing' || (is !== 'RetryableFailure' && is !== 'Failed') || attempt === undefined)
        return;
      counts.add(is === 'Failed' ? 'an image failed for good' : 'an attempt failed');
      if (attempt.problem !== undefined) return;
      const slack = clockError(truth) + ROUNDING_MS;
      const isTooLong = schedule.now - attempt.startedAt >= SYNCS.maxAttemptMs - slack;
      const isOver = schedule.now - (firstAt.get(uid) ?? 0) >= SYNCS.maxTotalMs - slack;
      if (isTooLong) counts.add('an attempt timed out');
      if (!isTooLong && !isOver)
        violated(
          `the attempt of ${keyOf(after)} fails after ${schedule.now - attempt.startedAt} ms: ${textAt(after, 'status', 'message')}`,
        );
    });
  },
};

function numberOf(image: StoredObject | undefined): number | undefined {
  return numberAt(image, 'status', 'attempt', 'number');
}

/** Returns the UID of the image that a DataVolume, snapshot or claim belongs to. */
function imageUidOf(server: ApiServer, object: StoredObject): string | undefined {
  const uid = controllerOf(object);
  const volume = byUid(server, Volume, uid);
  return volume === undefined ? uid : controllerOf(volume);
}

function problemOf(object: StoredObject, isGone: boolean): string | undefined {
  const { kind, metadata } = object;
  if (isGone || isTerminating(object)) return `${kind} ${metadata.name} was deleted`;
  const text = JSON.stringify(object.status) ?? '';
  if (phaseIn(object) === 'Failed' || text.includes('"error"')) return `${kind} ${metadata.name} failed`;
  if (restartsOf(object) > SYNCS.maxRestarts) return `${metadata.name} restarted too often`;
  return text.includes('got 40') ? `the source of ${metadata.name} is missing` : undefined;
}
