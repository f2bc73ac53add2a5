import type { Truth } from '../../invariants/invariant.ts';
import { Holder } from '../../invariants/leaders.ts';
import { objectOf } from '../../invariants/machines.ts';
import type { Remote } from '../../remote/remote.ts';
import type { Sent } from '../../scenario/traffic.ts';
import { LEASE } from './controller.ts';
import { isCreate, ownerIn } from './requests.ts';
import { Machine } from './resource.ts';

/** What is counted here, and must have happened over many seeds with any variant. */
export const INTERESTING = [
  'a create landed after its object was gone',
  'a create landed on an object being deleted',
  'a create landed twice',
  'a create landed after its sender had given up',
  'a create landed after another had the lead',
  'the answer to a create was lost',
  'an object was deleted while a create was on the wire',
  'a machine was deleted while a create was on the wire',
  'the lead was lost while a create was on the wire',
  'a create was sent by one who had lost the lead',
  'the lead went to another',
  'an object came back under its name',
  'a machine was resized',
] as const;

type Interesting = (typeof INTERESTING)[number] | typeof SWEPT;

/** Only where there is a sweeper. */
export const SWEPT = 'a machine without an object was deleted';

/** Counts the moments in which something is likely to go wrong. */
export function countInteresting(truth: Truth, remote: Remote): void {
  const { simulation, server, traffic } = truth;
  const add = (what: Interesting) => simulation.counts.add(what);
  const creates = (uid?: string) =>
    traffic.onTheWire().some((sent) => isCreate(sent) && (uid === undefined || ownerIn(sent) === uid));
  const holder = new Holder(truth, LEASE, (before) => {
    if (before === '') return;
    add('the lead went to another');
    const isHis = (sent: Sent) => isCreate(sent) && before.startsWith(`${sent.sender}_`);
    if (traffic.onTheWire().some(isHis)) add('the lead was lost while a create was on the wire');
  });

  traffic.onSend((sent) => {
    if (isCreate(sent) && !holder.is(sent.sender)) add('a create was sent by one who had lost the lead');
  });
  traffic.onLand((sent) => {
    if (!isCreate(sent)) return;
    const uid = ownerIn(sent);
    const object = objectOf(truth, uid);
    if (object === undefined) add('a create landed after its object was gone');
    else if (object.metadata.deletionTimestamp !== undefined)
      add('a create landed on an object being deleted');
    if (remote.machines.values().some(({ owner }) => owner?.uid === uid)) add('a create landed twice');
    if (sent.seen === 'that none comes') add('a create landed after its sender had given up');
    if (!holder.is(sent.sender)) add('a create landed after another had the lead');
  });
  traffic.onEnd((sent) => {
    if (isCreate(sent) && sent.seen === 'that none comes' && sent.landedAt !== undefined)
      add('the answer to a create was lost');
  });

  const gone = new Set<string>();
  server.listen(({ resource, key, before, after }) => {
    if (resource.kind.kind !== Machine.kind) return;
    if (after === undefined) gone.add(key);
    else if (before === undefined && gone.has(key)) add('an object came back under its name');
    const { uid = '', deletionTimestamp } = after?.object.metadata ?? {};
    if (deletionTimestamp === undefined || before?.object.metadata.deletionTimestamp !== undefined) return;
    if (creates(uid)) add('an object was deleted while a create was on the wire');
  });
  remote.listen(({ before, after }) => {
    const uid = before?.owner?.uid;
    if (before === undefined || uid === undefined || before.state === 'deleting') return;
    if (after?.state === 'deleting') {
      if (creates(uid)) add('a machine was deleted while a create was on the wire');
      if (objectOf(truth, uid) === undefined) add(SWEPT);
    } else if (after?.size !== before.size) add('a machine was resized');
  });
}
