import type { DatabaseServer } from '../database/server.ts';
import { DATABASE } from '../database/session.ts';
import type { Truth } from '../invariants/invariant.ts';
import { Holder } from '../invariants/leaders.ts';
import { LEASE } from '../scenario/observed-manager.ts';
import type { Sent } from '../scenario/traffic.ts';
import type { MirrorTruth } from './invariants.ts';

/**
 * Critical moments in runs with leader election. When many seeds are run, each of them must occur in at least one seed.
 */
export const LEADER_MOMENTS = [
  'leadership moved to another replica',
  'leadership moved while a batch was in transit',
  'a batch arrived after another replica became leader',
] as const;

/** Critical moments in runs with sharding. When many seeds are run, each of them must occur in at least one seed. */
export const SHARD_MOMENTS = ['a shard moved to another replica', 'two replicas had shards'] as const;

/**
 * Critical moments that are counted in all runs. When many seeds are run, each of them must occur in at least one seed.
 */
export const CRITICAL_MOMENTS = [
  'a batch was committed during the faults',
  'a batch arrived after its sender gave up',
  'a batch was rejected by the fence',
  'a batch committed, but its answer was lost',
  'a batch skipped a locked row',
  'a batch skipped a row that does not exist',
  'a batch was rejected by a constraint',
  'a session was terminated by its successor',
  'a row changed while the table was read',
  'a row was inserted after its VM',
  'a row of a deleted VM became DELETED',
  'a row was taken over by a re-created VM',
] as const;

type CriticalMoment =
  | (typeof CRITICAL_MOMENTS)[number]
  | (typeof LEADER_MOMENTS)[number]
  | (typeof SHARD_MOMENTS)[number];

export function isBatch({ origin, path }: Pick<Sent, 'origin' | 'path'>): boolean {
  return origin === DATABASE && path.endsWith('/write');
}

/** Counts the moments in which a bug is most likely to violate an invariant. */
export function countCriticalMoments(truth: Truth, mirrorTruth: MirrorTruth, isSharded: boolean): void {
  const add = (what: CriticalMoment) => truth.simulation.counts.add(what);
  if (isSharded) countShards(mirrorTruth.database, add);
  else countLeaders(truth, mirrorTruth.database, add);
  countBatches(truth, mirrorTruth.database, add);
  countSessions(mirrorTruth.database, add);
  countRows(mirrorTruth, add);
}

type Add = (what: CriticalMoment) => void;

function countLeaders({ server, traffic }: Truth, database: DatabaseServer, add: Add): void {
  const holder = new Holder({ server }, LEASE, (before) => {
    if (before === '') return;
    add('leadership moved to another replica');
    if (traffic.inFlight().some((sent) => isBatch(sent) && before.startsWith(`${sent.sender}_`)))
      add('leadership moved while a batch was in transit');
  });
  database.listen(({ type, session }) => {
    if (type === 'batch' && !holder.is(session.identity))
      add('a batch arrived after another replica became leader');
  });
}

function countShards(database: DatabaseServer, add: Add): void {
  const owners = new Map<number, string>();
  database.listen((event) => {
    const { identity } = event.session;
    if (event.type === 'acquired')
      for (const shard of event.shards) {
        if ((owners.get(shard) ?? identity) !== identity) add('a shard moved to another replica');
        owners.set(shard, identity);
        if (new Set(owners.values()).size > 1) add('two replicas had shards');
      }
  });
}

function countBatches({ simulation, traffic }: Truth, database: DatabaseServer, add: Add): void {
  database.listen((event) => {
    if (simulation.network.faulty && event.type === 'committed' && event.written > 0)
      add('a batch was committed during the faults');
  });
  traffic.onArrival((sent) => {
    if (isBatch(sent) && sent.outcome === 'failed') add('a batch arrived after its sender gave up');
  });
  traffic.onEnd((sent) => {
    if (isBatch(sent) && sent.outcome === 'failed' && sent.arrivedAt !== undefined)
      add('a batch committed, but its answer was lost');
  });
}

function countSessions(database: DatabaseServer, add: Add): void {
  let reading = false;
  database.listen((event) => {
    if (event.type === 'terminated') add('a session was terminated by its successor');
    if (event.type === 'fenced') add('a batch was rejected by the fence');
    if (event.type === 'rejected') add('a batch was rejected by a constraint');
    if (event.type === 'committed' && event.locked > 0) add('a batch skipped a locked row');
    if (event.type === 'committed' && event.missing.length > 0)
      add('a batch skipped a row that does not exist');
    if (event.type === 'read') {
      if (!event.isFirst && reading) add('a row changed while the table was read');
      reading = false;
    }
  });
  database.table.listen(() => {
    reading = true;
  });
}

function countRows({ database, timeline, words }: MirrorTruth, add: Add): void {
  database.table.listen(({ before, after, cause }) => {
    if (after === undefined) return;
    const views = timeline.views(after);
    if (before === undefined && cause === 'ssvirt' && views.at(-1)?.vm !== undefined)
      add('a row was inserted after its VM');
    if (typeof cause !== 'object' || before === undefined) return;
    if (after.status === words.Deleted) add('a row of a deleted VM became DELETED');
    if (before.status === words.Deleted) add('a row was taken over by a re-created VM');
  });
}
