import { nodeWorld } from '@vmwright/runtime';
import type pg from 'pg';
import type { Session } from '../../packages/operator/src/mirror/database.ts';
import { PostgresDatabase } from '../../packages/operator/src/mirror/postgres/database.ts';
import type { Row } from '../bar.ts';
import { median } from '../runtime/throughput.ts';
import { RUNNING, STALE } from './bench.ts';
import { Table } from './database.ts';
import type { Programs } from './programs.ts';

const ROWS = Number(process.env.ROWS ?? 50_000);
const BATCH = 2_500;
/** Number of rows that are written one at a time. Writing the whole table in this way would take too long. */
const SAMPLE = Math.min(500, ROWS);
const ROUNDS = Number(process.env.ROUNDS ?? 5);
const SHARD = 0;

/** A way to write statuses. */
interface Way {
  /** Writes the status. @returns the duration in seconds */
  readonly write: (ids: readonly string[], status: string) => Promise<number>;
  /** Number of rows to write. @default all */
  readonly rows?: number;
}

/**
 * Compares the mirror's SQL statement, which writes a batch of rows, with three other ways to write rows:
 * - `pgx` sends a batch of single-row updates, as the search-indexer of Red Hat ACM does
 * - `pg` sends the single-row updates of a batch as one string
 * - `rowAtATime` sends one lookup and one update per row
 *
 * Every batch takes one round trip and one transaction, and all batches have the same size.
 */
export async function* writer({ batch }: Programs): AsyncGenerator<Row> {
  await using table = await Table.start();
  await table.fill(ROWS, STALE);
  await using session = await openSession(table);
  const { client } = table;
  const rates = await measureAll(table, {
    ours: {
      write: inBatches((ids, status) =>
        session.write(
          ids.map((id) => ({ id, status })),
          [SHARD],
        ),
      ),
    },
    pgx: {
      write: async (_, status) => {
        await using program = batch(table, `--status=${status}`, `--size=${BATCH}`);
        const [line = ''] = await program.waitForLines((lines) => lines.length > 0);
        return Number(line.split(' ')[1]);
      },
    },
    pg: {
      write: inBatches((ids, status) => client.query(ids.map((id) => literalUpdate(id, status)).join(';'))),
    },
    rowAtATime: { write: (ids, status) => findAndUpdate(client, ids, status), rows: SAMPLE },
  });
  const ours = rates('ours');
  yield { name: `writer: batches of ${BATCH} (rows/s)`, ours, bar: { atLeast: 15_000 } };
  for (const library of ['pgx', 'pg'] as const)
    yield {
      name: `writer, batches of single-row updates with ${library} (rows/s)`,
      ours,
      theirs: rates(library),
      bar: { atLeast: 1.5 },
    };
  yield { name: 'writer, a row at a time (rows/s)', ours, theirs: rates('rowAtATime') };
}

/** Measures each way to write rows, once per round. @returns the median rate of each way, in rows per second */
async function measureAll<K extends string>(table: Table, ways: Readonly<Record<K, Way>>) {
  const ids = await table.ids();
  const rates = new Map<string, number[]>();
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, { write, rows = ROWS }] of Object.entries<Way>(ways)) {
      await table.reset(STALE);
      const seconds = await write(ids.slice(0, rows), RUNNING.row);
      const written = await table.count(RUNNING.row);
      if (written !== rows) throw new Error(`${name} has written ${written} of ${rows} rows`);
      rates.set(name, [...(rates.get(name) ?? []), rows / seconds]);
    }
  }
  return (name: K) => median(rates.get(name) ?? []);
}

async function openSession({ client }: Table): Promise<Session> {
  const { host, port, user = '', database = '', password } = client;
  const never = new AbortController().signal;
  const session = await new PostgresDatabase({
    host,
    port,
    user,
    database,
    clock: nodeWorld,
    identity: 'bench',
    password: async () => password ?? undefined,
    sslMode: 'disable',
    caFile: undefined,
    fence: 'session',
  }).open(never);
  await session.acquire([SHARD], false, never);
  return session;
}

function inBatches(write: (ids: readonly string[], status: string) => Promise<unknown>): Way['write'] {
  return async (ids, status) => {
    const started = performance.now();
    for (let from = 0; from < ids.length; from += BATCH) await write(ids.slice(from, from + BATCH), status);
    return secondsSince(started);
  };
}

function literalUpdate(id: string, status: string): string {
  return `UPDATE vms SET status = '${status}', updated_at = now() WHERE id = '${id}'`;
}

/** Finds each row by namespace and name, which have no index, and updates the row. */
async function findAndUpdate(client: pg.Client, ids: readonly string[], status: string): Promise<number> {
  const { rows } = await client.query('SELECT namespace, vm_name FROM vms WHERE id = ANY ($1)', [ids]);
  const started = performance.now();
  for (const { namespace, vm_name } of rows) {
    const found = await client.query({
      name: 'find',
      text: 'SELECT * FROM vms WHERE namespace = $1 AND vm_name = $2 AND deleted_at IS NULL ORDER BY id LIMIT 1',
      values: [namespace, vm_name],
    });
    await client.query({
      name: 'update',
      text: 'UPDATE vms SET status = $2, updated_at = now() WHERE id = $1 AND deleted_at IS NULL',
      values: [found.rows[0]?.id, status],
    });
  }
  return secondsSince(started);
}

function secondsSince(started: number): number {
  return (performance.now() - started) / 1000;
}
