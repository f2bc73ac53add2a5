import { sampleOf } from '@vmwright/core/testing';
import type { Mirror, Session } from '@vmwright/operator';
import type { DatabaseServer } from '../database/server.ts';
import type { RowChange, Table, TableRow } from '../database/table.ts';
import type { Invariant, Truth } from '../invariants/invariant.ts';
import type { Holder } from '../invariants/leaders.ts';
import { expectations, isMirrored, isNewer } from './expected.ts';
import { CLAIM_MS, SETTLING_MS } from './program.ts';
import type { Timeline, View } from './timeline.ts';
import { isTransient, SimulatedVm, statusOf, type Words } from './virtual-machine.ts';

/** Ground truth of the mirror, in addition to `Truth`, which all scenarios have. */
export interface MirrorTruth {
  readonly database: DatabaseServer;
  readonly timeline: Timeline;
  readonly words: Words;
}

/** A deposed leader, or a replica that lost a shard, cannot change a row after its successor has read the table. */
export function noWriteOfEndedTerm({ database }: MirrorTruth): Invariant {
  return {
    name: 'no write commits after a successor has read the table',
    watch: (_, violated) => {
      /** Sequence number of the last acquisition, by session id and shard. */
      const acquired = new Map<number, Map<number, number>>();
      const lastRead = new Map<number, number>();
      let acquisitions = 0;
      database.listen((event) => {
        const { session } = event;
        const own = acquired.get(session.id) ?? new Map<number, number>();
        acquired.set(session.id, own);
        if (event.type === 'acquired') {
          acquisitions += 1;
          for (const shard of event.shards) own.set(shard, acquisitions);
        } else if (event.type === 'read') {
          for (const [shard, at] of own) lastRead.set(shard, Math.max(lastRead.get(shard) ?? 0, at));
        } else if (event.type === 'committed') {
          const isLate = (shard: number) => (own.get(shard) ?? 0) < (lastRead.get(shard) ?? 0);
          if (event.shards.some(isLate))
            violated(
              `session ${session.id} of ${session.identity} commits a batch after a later session has read`,
            );
        }
      });
    },
  };
}

/** A replica reads the table only after it acquired the fence, because its predecessor may write until then. */
export function fenceBeforeRead({ database }: MirrorTruth): Invariant {
  return {
    name: 'the table is read after the fence was acquired',
    watch: (_, violated) => {
      const holders = new Set<number>();
      database.listen(({ type, session }) => {
        if (type === 'acquired') holders.add(session.id);
        if (type === 'read' && !holders.has(session.id))
          violated(`${session.identity} reads the table without having acquired the fence`);
      });
    },
  };
}

/** If a replica had lost the lease before its session acquired the fence, the session does not read the table. */
export class OnlyLeadersRead {
  readonly #deposed = new WeakSet<Session>();
  #violated: ((detail: string) => void) | undefined;

  readonly invariant: Invariant = {
    name: 'only a leader reads the table',
    watch: (_, violated) => {
      this.#violated = violated;
    },
  };

  acquired(session: Session, isLeader: boolean): void {
    if (!isLeader) this.#deposed.add(session);
  }

  read(identity: string, session: Session): void {
    if (this.#deposed.has(session))
      this.#violated?.(`${identity} reads the table although it did not lead when it acquired the fence`);
  }
}

/**
 * Number of times that a session may try to write a row that does not exist: once per queue key that refers to the row.
 */
const MAX_ATTEMPTS = 3;

/** The mirror forgets a row that no longer exists, instead of retrying the write forever. */
export function missingRowsAreForgotten({ database }: MirrorTruth): Invariant {
  return {
    name: 'rows that do not exist are forgotten',
    watch: (_, violated) => {
      const attempts = new Map<string, number>();
      database.listen((event) => {
        if (event.type !== 'committed') return;
        for (const id of event.missing) {
          const key = `${event.session.id} ${id}`;
          const count = (attempts.get(key) ?? 0) + 1;
          attempts.set(key, count);
          if (count > MAX_ATTEMPTS)
            violated(`${event.session.identity} writes ${id} for the ${count}th time`);
        }
      });
    },
  };
}

/** The mirror changes only the columns status and updated_at, and updated_at never goes back. */
export function onlyStatusChanges({ database }: MirrorTruth): Invariant {
  return {
    name: 'only status and updated_at change',
    watch: (_, violated) =>
      onBatchChange(database, ({ before, after }) => {
        const { status: _was, updatedAt: from, ...others } = before;
        const { status: _is, updatedAt: to, ...same } = after;
        if (JSON.stringify(others) !== JSON.stringify(same))
          violated(`${after.id} has other columns than before`);
        if ((to ?? 0) < (from ?? 0)) violated(`updated_at of ${after.id} goes back from ${from} to ${to}`);
      }),
  };
}

/**
 * The mirror never changes two kinds of rows: soft-deleted rows, and rows that never matched a VM and have a status
 * that the mirror does not write.
 */
export function foreignRowsUntouched({ database, timeline, words }: MirrorTruth): Invariant {
  return {
    name: 'foreign rows are never touched',
    watch: (_, violated) =>
      onBatchChange(database, ({ before, after }) => {
        if (before.deletedAt !== null) violated(`${after.id} is soft-deleted and becomes ${after.status}`);
        const hadVm = timeline.views(before).some(({ vm }) => vm !== undefined);
        if (!hadVm && !isMirrored(before, words))
          violated(`${after.id} never described a VM and becomes ${after.status}`);
      }),
  };
}

/** A status that the mirror wrote to a row, and the oldest version of the VM that can have caused this status. */
interface Shown {
  readonly status: string | null;
  readonly version: number;
}

/**
 * A row shows the states of its VM in the order of their resource versions, but may skip states. The check matches each
 * written status with the oldest possible version of the VM.
 */
export function neverGoesBack({ database, timeline, words }: MirrorTruth): Invariant {
  return {
    name: 'a row never goes back to an older state',
    watch: ({ simulation }, violated) => {
      const shown = new Map<string, Shown[]>();
      const replaced = replacedRows(database.table);
      const writers = new Map<string, { readonly session: number; readonly uid: string }>();
      database.table.listen(({ before, after, cause }) => {
        const row = after ?? before;
        if (row === undefined || cause === 'ssvirt') return;
        const stack = shown.get(row.id) ?? [];
        shown.set(row.id, stack);
        if (cause === 'fail-over') {
          while (stack.length > 0 && stack.at(-1)?.status !== after?.status) stack.pop();
          writers.delete(row.id);
          return;
        }
        const { status } = row;
        // A row is not checked when the mirror marks it as deleted because a newer row has the same VM name. The mirror
        // does this whatever the state of the VM.
        const isReplaced = status === words.Deleted && replaced.has(row.id);
        if (isReplaced) return;
        const oldest = stack.at(-1)?.version ?? 0;
        const views = timeline.views(row);
        const candidates = viewsFrom(views, oldest).filter(({ vm }) => canShow(vm, words).includes(status));
        const [found] = candidates;
        if (found === undefined) {
          const past = views.map(({ vm, version }) => `${statusOf(vm, words)} @${version}`).join(', ');
          violated(`${row.id} becomes ${status} after it has shown version ${oldest} of: ${past}`);
          return;
        }
        stack.push({ status, version: found.version });
        const now = simulation.schedule.now;
        const isSettled = ({ vm }: View) =>
          vm === undefined ||
          status !== words.Stopped ||
          !isTransient(vm) ||
          now - since(views, found) >= SETTLING_MS;
        if (!candidates.some(isSettled))
          violated(`${row.id} shows the transient state ${status} immediately`);
        // If more than one VM can have caused this status, it is unknown which VM the row shows. The check below is
        // then skipped.
        const uids = new Set(candidates.map(({ vm }) => vm?.metadata.uid));
        const { uid } = found.vm?.metadata ?? {};
        if (uid === undefined || uids.size > 1) return;
        const earlier = writers.get(row.id);
        const isTakenOver = earlier?.session === cause.session && earlier.uid !== uid;
        if (isTakenOver && now - createdMs(views, uid) < CLAIM_MS - 1_000)
          violated(
            `${row.id} shows the new VM ${uid} right after its creation, without waiting for a new row`,
          );
        writers.set(row.id, { session: cause.session, uid });
      });
    },
  };
}

/** Collects the ids of all rows for which a newer row with the same VM name has ever been inserted. */
function replacedRows(table: Table): ReadonlySet<string> {
  const ids = new Set<string>();
  table.listen(({ before, after }) => {
    if (before !== undefined || after === undefined) return;
    const same = table.all().filter(({ id, vmName }) => vmName === after.vmName && id !== after.id);
    for (const row of same) ids.add(isNewer(row, after) ? after.id : row.id);
  });
  return ids;
}

/** Returns the views that were current at a version or later. */
function viewsFrom(views: readonly View[], version: number): readonly View[] {
  return views.filter(
    (view, at) => view.version >= version || (views[at + 1]?.version ?? Infinity) > version,
  );
}

/**
 * Returns the statuses that a row of this VM may show. While the VM's state `Stopped` is transient, the row may already
 * show that the VM is starting.
 */
function canShow(vm: View['vm'], words: Words): readonly (string | null)[] {
  const status = statusOf(vm, words);
  return vm !== undefined && isTransient(vm) ? [status, words.NewRunning] : [status];
}

/** Returns the time at which the VM entered the transient state that it has in this view. */
function since(views: readonly View[], view: View): number {
  let at = views.indexOf(view);
  for (let before = views[at - 1]; before?.vm !== undefined && isTransient(before.vm); before = views[at - 1])
    at -= 1;
  return views[at]?.atMs ?? 0;
}

function createdMs(views: readonly View[], uid: string): number {
  return views.find(({ vm }) => vm?.metadata.uid === uid)?.atMs ?? 0;
}

/** After convergence, every row has the status that follows from the VMs in the cluster. */
export function tableIsCorrect({ database, words }: MirrorTruth): Invariant {
  return {
    name: 'the table equals a recomputation from the cluster',
    healed: function* ({ server }) {
      for (const { row, status } of expectations(server, database.table, words))
        if (status !== undefined && row.status !== status)
          yield `${row.id} (${row.namespace}/${row.vmName}) is ${row.status} instead of ${status}`;
    },
  };
}

/** A mirror of a process that leads or owns shards, and its metrics. */
export interface ActiveMirror {
  readonly mirror: Mirror;
  readonly metrics: () => string;
}

/**
 * When idle, the mirror has no pending changes and no dead letters, and its metrics count no more VMs than exist.
 * @param active returns the mirrors that must be connected: the leader's mirror or, with sharding, the mirrors of all
 * replicas
 */
export function nothingPending(active: () => readonly ActiveMirror[]): Invariant {
  return {
    name: 'nothing is pending',
    healed: function* ({ server }) {
      const found = active();
      if (found.length === 0) yield 'no replica leads';
      for (const { mirror, metrics } of found) {
        const { isConnected, pending, deadLetters } = mirror.health;
        if (!isConnected) yield 'the leader, or the owner of a shard, has no session';
        if (pending > 0) yield `${pending} VMs are pending`;
        if (deadLetters > 0) yield `${deadLetters} rows are dead letters`;
        const vms = [...server.objects(SimulatedVm)].length;
        const text = metrics();
        for (const name of ['ssvirt_vm_without_row', 'ssvirt_vm_duplicate_rows']) {
          const value = sampleOf(text, name) ?? 0;
          if (value > vms) yield `${name} is ${value}, but ${vms} VMs exist`;
        }
      }
    },
  };
}

/**
 * A replica that must stop, or that has lost leadership, ends its work in time, even if the database does not answer.
 * Other errors are ignored: for example, a process may end because it cannot list the VMs.
 * @param failures errors that ended processes
 */
export function stopsInTime(failures: readonly string[]): Invariant {
  return {
    name: 'every replica stops in time',
    healed: function* () {
      for (const message of failures) if (message.includes('has not ended')) yield message;
    },
  };
}

/** Maximum time for which a row may differ from its VM while no faults are injected, not counting `NEW_MS`. */
const LAG_MS = 30_000;
/**
 * Time in which a row is not checked. It starts when the VM is created or deleted, or when a client other than the
 * mirror changes the row. The mirror may then search for the row with back-off, or wait for a new row before it uses
 * the row of an earlier VM with the same name.
 */
const NEW_MS = 60_000;

/** While no faults are injected, a row follows its VM within `LAG_MS`, without the help of a resync. */
export class BoundedLag {
  readonly #truth: MirrorTruth;
  readonly #wrongSince = new Map<string, number>();
  readonly #newAt = new Map<string, number>();
  #violated: ((detail: string) => void) | undefined;

  readonly invariant: Invariant;

  constructor(mirrorTruth: MirrorTruth) {
    this.#truth = mirrorTruth;
    this.invariant = {
      name: 'a row follows its VM within seconds',
      watch: (truth, violated) => {
        this.#violated = violated;
        this.#watchNew(truth);
      },
    };
  }

  #watchNew({ simulation, server }: Truth): void {
    const { database } = this.#truth;
    const touch = (vmName: string | null) => this.#newAt.set(vmName ?? '', simulation.schedule.now);
    database.table.listen(({ before, after, cause }) => {
      const isBatch = typeof cause === 'object';
      if (!isBatch) touch((after ?? before)?.vmName ?? null);
    });
    server.listen(({ resource, before, after }) => {
      if (resource.kind.kind === SimulatedVm.kind && (before === undefined || after === undefined))
        touch((after ?? before)?.object.metadata.name ?? null);
    });
  }

  /** Starts to check all rows once per second. */
  begin({ simulation, server }: Truth): void {
    const { schedule } = simulation;
    const { database, words } = this.#truth;
    const check = () => {
      for (const { row, vm, status } of expectations(server, database.table, words)) {
        const isNew = schedule.now - (this.#newAt.get(row.vmName ?? '') ?? 0) < NEW_MS;
        if (vm === undefined || status === undefined || row.status === status || isNew) {
          this.#wrongSince.delete(row.id);
          continue;
        }
        const wrongSince = this.#wrongSince.get(row.id) ?? schedule.now;
        this.#wrongSince.set(row.id, wrongSince);
        if (schedule.now - wrongSince > LAG_MS)
          this.#violated?.(`${row.id} has been ${row.status} instead of ${status} for ${LAG_MS / 1_000} s`);
      }
      schedule.after(1_000, check);
    };
    check();
  }
}

/** A change of a row by a batch of the mirror. */
type BatchChange = RowChange & { readonly before: TableRow; readonly after: TableRow };

function onBatchChange({ table }: DatabaseServer, listener: (change: BatchChange) => void): void {
  table.listen((change) => {
    const { before, after, cause } = change;
    if (typeof cause === 'object' && before !== undefined && after !== undefined)
      listener({ ...change, before, after });
  });
}

/** Returns the mirror of the replica that holds the lease. */
export function leaderIn(
  mirrors: ReadonlyMap<string, ActiveMirror>,
  holder: Holder,
): readonly ActiveMirror[] {
  return [...mirrors].filter(([identity]) => holder.is(identity)).map(([, mirror]) => mirror);
}

/** Returns the mirror of the last process of each replica. */
export function lastOfEach(mirrors: ReadonlyMap<string, ActiveMirror>): readonly ActiveMirror[] {
  const last = new Map([...mirrors].map(([identity, mirror]) => [identity.split('.')[0], mirror]));
  return [...last.values()];
}
