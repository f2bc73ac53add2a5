import type { StatusWrite } from '@vmwright/operator';
import type { Choices } from '@vmwright/simulation';
import type { TableRow } from '../../src/database/table.ts';

/** A call of a session, or an action of another client of the database. */
export type Operation =
  | { readonly do: 'open' | 'close' | 'rows' | 'check'; readonly session: number }
  | { readonly do: 'acquire' | 'release'; readonly session: number; readonly shards: readonly number[] }
  | { readonly do: 'find'; readonly session: number; readonly names: readonly string[] }
  | {
      readonly do: 'write';
      readonly session: number;
      readonly writes: readonly StatusWrite[];
      readonly shards: readonly number[];
    }
  | { readonly do: 'insert'; readonly row: TableRow }
  | { readonly do: 'softDelete' | 'lock' | 'unlock'; readonly id: string };

const SESSIONS = 3;
const LENGTH = 30;
const IDS = ['vm-a', 'vm-b', 'vm-c', 'vm-d', 'vm-e', 'vm-f'] as const;
const NAMES = ['web', 'db', 'app'] as const;
const ACCEPTED = ['POWERED_ON', 'POWERED_OFF', 'DELETED'] as const;
const STATUSES = [...ACCEPTED, 'BAD'] as const;
const SHARDS: readonly (readonly number[])[] = [[0], [1], [0, 1]];

/** UUID of the vApp of all rows. */
export const VAPP = '11111111-1111-4111-8111-111111111111';
/** Earliest creation time of a row. */
export const CREATED_MS = Date.UTC(2026, 0, 1);
/** Time in the future that some rows have as `updated_at`. */
export const FUTURE_MS = Date.UTC(2100, 0, 1);

/**
 * Returns whether the constraint of this test rejects a status for a row. PostgreSQL and the simulated database have the
 * same constraint.
 */
export function rejects({ name }: Pick<TableRow, 'name'>, status: string): boolean {
  return name === 'rejected' && status === 'BAD';
}

/** Returns a random sequence of operations. It begins with inserts and with a session that acquires the fence. */
export function sequence(choices: Choices): readonly Operation[] {
  const operations: Operation[] = [];
  for (const id of IDS) if (!choices.oneIn(4)) operations.push({ do: 'insert', row: newRow(choices, id) });
  operations.push({ do: 'open', session: 0 }, { do: 'acquire', session: 0, shards: [0, 1] });
  for (let count = 0; count < LENGTH; count++) operations.push(operation(choices));
  return operations;
}

function newRow(choices: Choices, id: string): TableRow {
  return {
    id,
    name: choices.oneIn(3) ? 'rejected' : 'accepted',
    vappId: `urn:vcloud:vapp:${VAPP}`,
    vmName: choices.oneIn(6) ? null : choices.one(NAMES),
    namespace: choices.oneIn(4) ? null : 'red',
    status: choices.oneIn(4) ? null : choices.one(ACCEPTED),
    createdAt: choices.oneIn(6) ? null : CREATED_MS + choices.pick(1_000),
    updatedAt: choices.oneIn(4) ? FUTURE_MS : CREATED_MS,
    deletedAt: null,
  };
}

function operation(choices: Choices): Operation {
  const session = choices.pick(SESSIONS);
  const id = choices.one(IDS);
  const shards = choices.one([SHARDS[0] ?? [], ...SHARDS]);
  return choices.one<() => Operation>([
    () => write(choices, session, shards),
    () => write(choices, session, shards),
    () => write(choices, session, shards),
    () => write(choices, session, shards),
    () => ({ do: 'open', session }),
    () => ({ do: 'open', session }),
    () => ({ do: 'acquire', session, shards }),
    () => ({ do: 'acquire', session, shards }),
    () => ({ do: 'release', session, shards }),
    () => ({ do: 'rows', session }),
    () => ({ do: 'find', session, names: [choices.one(NAMES), choices.one(NAMES)] }),
    () => ({ do: 'check', session }),
    () => ({ do: 'close', session }),
    () => ({ do: 'insert', row: newRow(choices, id) }),
    () => ({ do: 'softDelete', id }),
    () => ({ do: 'lock', id }),
    () => ({ do: 'unlock', id }),
  ])();
}

function write(choices: Choices, session: number, shards: readonly number[]): Operation {
  const ids = IDS.filter(() => choices.oneIn(2));
  const writes = [...ids, ...(choices.oneIn(6) ? ['vm-missing'] : [])].map((id) => ({
    id,
    status: choices.one(STATUSES),
  }));
  return { do: 'write', session, writes, shards };
}
