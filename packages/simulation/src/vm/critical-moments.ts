import { fieldAt } from '../apiserver/json.ts';
import type { StoredObject } from '../apiserver/object.ts';
import type { Cloud } from '../cloud/cloud.ts';
import type { Truth } from '../invariants/invariant.ts';
import { Holder } from '../invariants/leaders.ts';
import { objectOf } from '../invariants/machines.ts';
import { LEASE } from '../scenario/observed-manager.ts';
import type { Sent } from '../scenario/traffic.ts';
import type { ModelServer } from '../world/server.ts';
import { ownerIn, serversOf } from './external-resources.ts';
import { conditionsOf, countOf, isPaused, onVmChange, vmIdOf } from './objects.ts';
import { isCreate, requestedOwner } from './requests.ts';

/** Critical moments that are counted here. When many seeds are run, each moment must occur in at least one seed. */
export const CRITICAL_MOMENTS = [
  'a create arrived after its object was gone',
  'a create arrived for an object being deleted',
  'a create arrived twice',
  'a create arrived after its sender timed out',
  'a create arrived after another replica became leader',
  'the response to a create was lost',
  'an object was deleted while a create was in flight',
  'a machine disappeared while a create was in flight',
  'leadership was lost while a create was in flight',
  'leadership moved to another replica',
  'an object was re-created under the same name',
  "a name conflict was caused by the VM's own server",
  'a name conflict was caused by a server being deleted',
  'a server created by another replica was adopted',
  'an idempotency key belonged to a deleted server',
  'an orphaned machine was deleted',
  'a machine was orphaned',
  'a machine was reported as lost',
  'a machine was re-created',
  'a machine was re-created a second time',
  'a name was reported as prohibited',
  'a name was reported as taken',
  'a name was accepted after a rejection',
  'a machine was reported as failed',
  'a failed machine was replaced',
  'ownership labels were restored',
  'the cloud was reported as unreachable',
  'an object was paused',
  'an object was deleted while it was paused',
] as const;

type CriticalMoment = (typeof CRITICAL_MOMENTS)[number];

/** Counts the moments in which a bug is most likely to violate an invariant. */
export function countCriticalMoments(truth: Truth, cloud: Cloud): void {
  const add = (what: CriticalMoment) => truth.simulation.counts.add(what);
  countCreates(truth, cloud, add);
  countObjects(truth, cloud, add);
  countMachines(truth, cloud, add);
}

type Add = (what: CriticalMoment) => void;

function countCreates(truth: Truth, cloud: Cloud, add: Add): void {
  const { traffic } = truth;
  const holder = new Holder(truth, LEASE, (before) => {
    if (before === '') return;
    add('leadership moved to another replica');
    const isTheirs = (sent: Sent) => isCreate(sent) && before.startsWith(`${sent.sender}_`);
    if (traffic.inFlight().some(isTheirs)) add('leadership was lost while a create was in flight');
  });
  traffic.onArrival((sent) => {
    if (!isCreate(sent)) return;
    const uid = requestedOwner(sent);
    const object = objectOf(truth, uid);
    if (object === undefined) add('a create arrived after its object was gone');
    else if (object.metadata.deletionTimestamp !== undefined)
      add('a create arrived for an object being deleted');
    if (serversOf(cloud, uid).length > 0) add('a create arrived twice');
    if (sent.outcome === 'failed') add('a create arrived after its sender timed out');
    if (!holder.is(sent.sender)) add('a create arrived after another replica became leader');
  });
  traffic.onEnd((sent) => {
    if (isCreate(sent) && sent.outcome === 'failed' && sent.arrivedAt !== undefined)
      add('the response to a create was lost');
  });
}

function countObjects(truth: Truth, cloud: Cloud, add: Add): void {
  const gone = new Set<string>();
  const makers = new Map<string, string>();
  let sender = '';
  truth.traffic.onArrival((sent) => {
    sender = sent.sender;
  });
  cloud.servers.listen(({ before, after, cause }) => {
    if (before === undefined && after !== undefined && cause === 'request') makers.set(after.id, sender);
  });
  onVmChange(truth, (before, after) => {
    if (after === undefined) {
      if (before !== undefined) gone.add(before.metadata.name);
      return;
    }
    if (before === undefined) {
      if (gone.has(after.metadata.name)) add('an object was re-created under the same name');
      return;
    }
    if (isPaused(after) && !isPaused(before)) add('an object was paused');
    if (after.metadata.deletionTimestamp !== undefined && before.metadata.deletionTimestamp === undefined) {
      if (isPaused(after)) add('an object was deleted while it was paused');
      if (createsOnTheWire(truth, after.metadata.uid))
        add('an object was deleted while a create was in flight');
    }
    if (before.status === after.status) return;
    const vmId = vmIdOf(after);
    if (vmId !== undefined && vmIdOf(before) === undefined && (makers.get(vmId) ?? sender) !== sender)
      add('a server created by another replica was adopted');
    const recreations = countOf(after, 'recreations');
    if (recreations > countOf(before, 'recreations')) add('a machine was re-created');
    if (recreations > Math.max(1, countOf(before, 'recreations')))
      add('a machine was re-created a second time');
    for (const what of newlyReported(before, after)) add(what);
  });
}

const REPORTED: Readonly<Record<string, CriticalMoment>> = {
  VmLost: 'a machine was reported as lost',
  NameProhibited: 'a name was reported as prohibited',
  NameTaken: 'a name was reported as taken',
  MachineFailed: 'a machine was reported as failed',
  CloudUnreachable: 'the cloud was reported as unreachable',
};

function* newlyReported(
  before: StoredObject,
  after: StoredObject,
): Generator<CriticalMoment, void, undefined> {
  const [was, is] = [conditionsOf(before), conditionsOf(after)];
  const reason = is.get('Ready')?.reason ?? '';
  const reported = REPORTED[reason];
  if (reported !== undefined && was.get('Ready')?.reason !== reason) yield reported;
  if (was.get('NameAccepted')?.status === 'False' && is.get('NameAccepted')?.status === 'True')
    yield 'a name was accepted after a rejection';
}

function countMachines(truth: Truth, cloud: Cloud, add: Add): void {
  cloud.servers.listen(({ before, after, cause }) => {
    const uid = before && ownerIn(before.labels);
    if (before === undefined) return;
    if (uid === undefined) {
      if (after !== undefined && ownerIn(after.labels) !== undefined) add('ownership labels were restored');
      return;
    }
    if (
      cause === 'request' &&
      before.state === 'failed' &&
      after?.state === 'deleting' &&
      objectOf(truth, uid)?.metadata.deletionTimestamp === undefined &&
      objectOf(truth, uid) !== undefined
    )
      add('a failed machine was replaced');
    if (after !== undefined && ownerIn(after.labels) === undefined && cause === 'request')
      add('a machine was orphaned');
    if (before.state === 'deleting' || (after !== undefined && after.state !== 'deleting')) return;
    if (createsOnTheWire(truth, uid)) add('a machine disappeared while a create was in flight');
    if (cause === 'request' && objectOf(truth, uid) === undefined) add('an orphaned machine was deleted');
  });
}

/** Wraps the cloud and counts its 409 and 410 responses by their cause. */
export function counted(truth: Pick<Truth, 'simulation' | 'server' | 'kind'>, cloud: Cloud): ModelServer {
  const add = (what: CriticalMoment) => truth.simulation.counts.add(what);
  return {
    receive: (arrived) => {
      const answer = cloud.receive(arrived);
      if (!('body' in answer) || answer.status < 409 || answer.status > 410) return answer;
      if (answer.status === 410) add('an idempotency key belonged to a deleted server');
      const id = fieldAt(JSON.parse(answer.body), ['serverId']);
      const holder = typeof id === 'string' ? cloud.servers.get(id) : undefined;
      if (answer.status !== 409 || holder === undefined) return answer;
      if (holder.state === 'deleting') add('a name conflict was caused by a server being deleted');
      const owner = ownerIn(holder.labels);
      for (const object of truth.server.objects(truth.kind))
        if (object.metadata.uid === owner && vmIdOf(object) === undefined)
          add("a name conflict was caused by the VM's own server");
      return answer;
    },
    reject: (status, seconds) => cloud.reject(status, seconds),
  };
}

function createsOnTheWire({ traffic }: Truth, uid: string | undefined): boolean {
  return traffic.inFlight().some((sent) => isCreate(sent) && requestedOwner(sent) === uid);
}
