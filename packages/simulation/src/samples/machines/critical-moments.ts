import type { Truth } from '../../invariants/invariant.ts';
import { Holder } from '../../invariants/leaders.ts';
import { objectOf } from '../../invariants/machines.ts';
import type { Remote } from '../../remote/remote.ts';
import type { Sent } from '../../scenario/traffic.ts';
import { LEASE } from './controller.ts';
import { isCreate, ownerIn } from './requests.ts';
import { Machine } from './resource.ts';

/**
 * Moments in which a bug is most likely to violate an invariant. When many seeds of a variant of the sample controller
 * are run, each moment must occur in at least one seed.
 */
export const CRITICAL_MOMENTS = [
  'a create arrived after its object was gone',
  'a create arrived for an object being deleted',
  'a create arrived twice',
  'a create arrived after its sender timed out',
  'a create arrived after another replica became leader',
  'the response to a create was lost',
  'an object was deleted while a create was in flight',
  'a machine was deleted while a create was in flight',
  'leadership was lost while a create was in flight',
  'a create was sent by a former leader',
  'leadership moved to another replica',
  'an object was re-created under the same name',
  'a machine was resized',
] as const;

type CriticalMoment = (typeof CRITICAL_MOMENTS)[number] | typeof COLLECTED;

/** Counted only for variants with a garbage collector. */
export const COLLECTED = 'an orphaned machine was deleted';

/** Counts the critical moments of a run. */
export function countCriticalMoments(truth: Truth, remote: Remote): void {
  const { simulation, server, traffic } = truth;
  const add = (what: CriticalMoment) => simulation.counts.add(what);
  const creates = (uid?: string) =>
    traffic.inFlight().some((sent) => isCreate(sent) && (uid === undefined || ownerIn(sent) === uid));
  const holder = new Holder(truth, LEASE, (before) => {
    if (before === '') return;
    add('leadership moved to another replica');
    const isTheirs = (sent: Sent) => isCreate(sent) && before.startsWith(`${sent.sender}_`);
    if (traffic.inFlight().some(isTheirs)) add('leadership was lost while a create was in flight');
  });

  traffic.onSend((sent) => {
    if (isCreate(sent) && !holder.is(sent.sender)) add('a create was sent by a former leader');
  });
  traffic.onArrival((sent) => {
    if (!isCreate(sent)) return;
    const uid = ownerIn(sent);
    const object = objectOf(truth, uid);
    if (object === undefined) add('a create arrived after its object was gone');
    else if (object.metadata.deletionTimestamp !== undefined)
      add('a create arrived for an object being deleted');
    if (remote.machines.values().some(({ owner }) => owner?.uid === uid)) add('a create arrived twice');
    if (sent.outcome === 'failed') add('a create arrived after its sender timed out');
    if (!holder.is(sent.sender)) add('a create arrived after another replica became leader');
  });
  traffic.onEnd((sent) => {
    if (isCreate(sent) && sent.outcome === 'failed' && sent.arrivedAt !== undefined)
      add('the response to a create was lost');
  });

  const gone = new Set<string>();
  server.listen(({ resource, key, before, after }) => {
    if (resource.kind.kind !== Machine.kind) return;
    if (after === undefined) gone.add(key);
    else if (before === undefined && gone.has(key)) add('an object was re-created under the same name');
    const { uid = '', deletionTimestamp } = after?.object.metadata ?? {};
    if (deletionTimestamp === undefined || before?.object.metadata.deletionTimestamp !== undefined) return;
    if (creates(uid)) add('an object was deleted while a create was in flight');
  });
  remote.listen(({ before, after }) => {
    const uid = before?.owner?.uid;
    if (before === undefined || uid === undefined || before.state === 'deleting') return;
    if (after?.state === 'deleting') {
      if (creates(uid)) add('a machine was deleted while a create was in flight');
      if (objectOf(truth, uid) === undefined) add(COLLECTED);
    } else if (after?.size !== before.size) add('a machine was resized');
  });
}
