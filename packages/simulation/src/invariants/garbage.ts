import { fieldAt } from '../apiserver/json.ts';
import type { StoredObject } from '../apiserver/object.ts';
import type { Invariant, Truth } from './invariant.ts';
import { Holder } from './leaders.ts';
import { objectOf } from './machines.ts';

/**
 * Collects the UIDs of all objects of the kind that ever had a deletionTimestamp. A UID stays in the set even if an
 * etcd restore removes the object.
 */
export function deletedUids({ server, kind }: Pick<Truth, 'server' | 'kind'>): ReadonlySet<string> {
  const uids = new Set<string>();
  server.listen(({ resource, before, after }) => {
    if (resource.kind.kind !== kind.kind) return;
    for (const { metadata } of [before, after].flatMap((version) => version?.object ?? []))
      if (metadata.deletionTimestamp !== undefined) uids.add(metadata.uid ?? '');
  });
  return uids;
}

/** Whether deleting the object also deletes its machines. */
function isToBeCollected({ metadata: { annotations = {} } }: StoredObject): boolean {
  return (
    annotations['vmwright.dev/deletion-policy'] !== 'Orphan' && annotations['vmwright.dev/paused'] !== 'true'
  );
}

export interface LeakOptions {
  /** Name of the Lease that the operator's replicas compete for. */
  readonly lease: string;
  /** Subscribes to the log lines of all replicas. */
  readonly lines: (listener: (line: string, identity: string) => void) => void;
}

/**
 * If the leader itself removed the finalizer of an object, the leader deletes the remaining machines of that object. If
 * another replica or client removed the finalizer, the leader cannot know whether the object was deleted, and must
 * report the machines as orphans.
 */
export function nothingLeaked({ lease, lines }: LeakOptions): Invariant {
  const removers = new Map<string, string>();
  const reports = new Map<string, Set<string>>();
  let holder: Holder | undefined;
  return {
    name: 'no machine is leaked',
    watch: (truth, violated) => {
      holder = new Holder(truth, lease);
      let sender = '';
      truth.traffic.onArrival((sent) => {
        sender = sent.sender;
      });
      truth.server.listen(({ resource, before, after }) => {
        if (resource.kind.kind !== truth.kind.kind || before === undefined || after !== undefined) return;
        const { object } = before;
        if (isToBeCollected(object)) removers.set(object.metadata.uid ?? '', sender);
      });
      lines((line, identity) => {
        if (!line.includes('"ids":')) return;
        const reported = reports.get(identity) ?? new Set();
        reports.set(identity, reported);
        const ids = fieldAt(JSON.parse(line), ['ids']);
        for (const each of Array.isArray(ids) ? ids : []) {
          const id = String(each).replace(/^.*\//, '');
          reported.add(id);
          const { owner = '' } = [...truth.external.all()].find((resource) => resource.id === id) ?? {};
          if (objectOf(truth, owner) !== undefined)
            violated(`${id} is reported as an orphan, but its object ${owner} exists`);
        }
      });
    },
    healed: function* (truth) {
      for (const { id, owner } of truth.external.all()) {
        if (owner === undefined || objectOf(truth, owner) !== undefined) continue;
        const isKnownToLeader = holder?.is(removers.get(owner) ?? '') ?? false;
        const isReported = [...reports].some(([identity, ids]) => holder?.is(identity) && ids.has(id));
        if (isKnownToLeader || !isReported)
          yield `${id} exists without its object ${owner}${isReported ? ', and the leader only reported it' : ''}`;
      }
    },
  };
}
