import { fieldAt } from '../apiserver/json.ts';
import type { StoredObject } from '../apiserver/object.ts';
import type { Invariant, Truth } from './invariant.ts';
import { Holder } from './leaders.ts';
import { objectOf } from './machines.ts';

/** UIDs of all objects of the kind whose deletion was ever requested, also of those that a restore has taken away since. */
export function deletedUids({ server, kind }: Pick<Truth, 'server' | 'kind'>): ReadonlySet<string> {
  const uids = new Set<string>();
  server.listen(({ resource, before, after }) => {
    if (resource.kind.kind !== kind.kind) return;
    for (const { metadata } of [before, after].flatMap((version) => version?.object ?? []))
      if (metadata.deletionTimestamp !== undefined) uids.add(metadata.uid ?? '');
  });
  return uids;
}

/** Whether an object that is deleted takes its machines with it. */
function isToBeCollected({ metadata: { annotations = {} } }: StoredObject): boolean {
  return (
    annotations['vmwright.dev/deletion-policy'] !== 'Orphan' && annotations['vmwright.dev/paused'] !== 'true'
  );
}

export interface LeakOptions {
  /** Of the operator's replicas. */
  readonly lease: string;
  /** Told of each line that is logged, and by which replica. */
  readonly lines: (tell: (line: string, identity: string) => void) => void;
}

/**
 * A machine whose object is gone is deleted when the present leader has itself taken the finalizer off that object. Where
 * it cannot know that the object was deleted, it has reported the machine.
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
      truth.traffic.onLand((sent) => {
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
          const { owner = '' } = [...truth.outside.all()].find((resource) => resource.id === id) ?? {};
          if (objectOf(truth, owner) !== undefined)
            violated(`${id} is reported as an orphan, and its object ${owner} is there`);
        }
      });
    },
    healed: function* (truth) {
      for (const { id, owner } of truth.outside.all()) {
        if (owner === undefined || objectOf(truth, owner) !== undefined) continue;
        const isKnownToLeader = holder?.is(removers.get(owner) ?? '') ?? false;
        const isReported = [...reports].some(([who, ids]) => holder?.is(who) && ids.has(id));
        if (isKnownToLeader || !isReported)
          yield `${id} is there, and the object ${owner} is not${isReported ? ', which is only reported' : ''}`;
      }
    },
  };
}
