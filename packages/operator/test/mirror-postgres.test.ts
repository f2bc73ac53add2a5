import { once } from 'node:events';
import { createServer } from 'node:net';
import { VirtualClock } from '@vmwright/core/testing';
import { nodeWorld } from '@vmwright/runtime';
import { freePort, type Postgres, startPostgres } from '@vmwright/testbed';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { writeBatch } from '../src/mirror/batch.ts';
import { DatabaseError, type Session, type StatusWrite } from '../src/mirror/database.ts';
import { EpochFence, FENCE_TABLE, type Query, SessionLockFence } from '../src/mirror/postgres/fences.ts';
import { PostgresSession } from '../src/mirror/postgres/session.ts';
import type { Row } from '../src/mirror/rows.ts';
import { createDatabase, FENCE_TABLE_DDL, type MirrorDatabase, NEVER } from './mirror-database.ts';

/*
 * Not covered: `pg_is_in_recovery()`, which needs a standby server. A primary server with read-only sessions is
 * covered.
 */

/** Privileges that the mirror needs with the setting `fence: session`. */
const MINIMAL = ['SELECT ON vms', 'UPDATE (status, updated_at) ON vms'];

let postgres: Postgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres[Symbol.asyncDispose]());

const create = () => createDatabase(postgres);

async function pagesOf(session: Pick<Session, 'rows'>): Promise<readonly (readonly Row[])[]> {
  const pages: (readonly Row[])[] = [];
  for await (const page of session.rows()) pages.push(page);
  return pages;
}

const poweredOn = (...ids: readonly string[]): readonly StatusWrite[] =>
  ids.map((id) => ({ id, status: 'POWERED_ON' }));

/** Returns the error of a call, and checks that it does not contain the password of the server. */
async function failureOf(call: Promise<unknown>): Promise<Pick<DatabaseError, 'code' | 'scope' | 'message'>> {
  const error = await call.then(
    () => undefined,
    (caught: unknown) => caught,
  );
  if (!(error instanceof DatabaseError)) throw new Error('no DatabaseError was thrown', { cause: error });
  expect(error.message).not.toContain(postgres.password);
  const { code, scope, message } = error;
  return { code, scope, message };
}

/** Inserts rows `r00001`, `r00002` and so on. */
async function insertMany({ ssvirt }: MirrorDatabase, count: number): Promise<readonly string[]> {
  await ssvirt.insertVm({ namespace: 'tenant', name: 'vm', id: 'r00000' });
  await ssvirt.query(
    `INSERT INTO vms (id, name, vapp_id, vm_name, namespace, status, created_at)
     SELECT 'r' || lpad(n::text, 5, '0'), 'vm', vapp_id, 'vm-' || n, 'tenant', 'POWERED_OFF', now()
     FROM vms, generate_series(1, $1) AS n`,
    [count],
  );
  await ssvirt.query(`DELETE FROM vms WHERE id = 'r00000'`);
  return Array.from({ length: count }, (_, at) => `r${String(at + 1).padStart(5, '0')}`);
}

describe('reading the table', () => {
  test('a read of the table yields all live rows in pages', async () => {
    const env = await create();
    const ids = await insertMany(env, 12_000);
    await env.ssvirt.query(`UPDATE vms SET deleted_at = now() WHERE id = 'r00007'`);
    await env.ssvirt.query(`UPDATE vms SET vm_name = NULL WHERE id = 'r00008'`);
    const pages = await pagesOf(await env.open());
    expect(pages.map(({ length }) => length)).toEqual([5_000, 5_000, 1_998]);
    expect(pages.flat().map(({ id }) => id)).toEqual(ids.filter((id) => id !== 'r00007' && id !== 'r00008'));
  });

  test('a read of the table ends if the table is empty, and if the last page is full', async () => {
    const env = await create();
    const session = await env.open();
    expect((await pagesOf(session)).flat()).toEqual([]);
    await insertMany(env, 5_000);
    expect((await pagesOf(session)).flat()).toHaveLength(5_000);
  });

  test('a read of the table converts nulls, vApp ids and times', async () => {
    const env = await create();
    const vapp = '5F1C0A52-0D0E-4D0B-9C5E-0A1B2C3D4E5F';
    await env.ssvirt.insertVm({ namespace: null, name: 'a', id: 'a', vapp, status: null });
    await env.ssvirt.insertVm({ namespace: 'tenant', name: 'b', id: 'b', vapp });
    await env.ssvirt.query(`UPDATE vms SET created_at = NULL WHERE id = 'a'`);
    await env.ssvirt.query(`UPDATE vms SET created_at = '2026-11-16 10:00:00.25Z' WHERE id = 'b'`);
    const common = { vapp: vapp.toLowerCase() };
    expect((await pagesOf(await env.open())).flat()).toEqual([
      { ...common, id: 'a', vmName: 'a', namespace: '', status: '', createdAt: 0 },
      {
        ...common,
        id: 'b',
        vmName: 'b',
        namespace: 'tenant',
        status: 'INSTANTIATING',
        createdAt: Date.parse('2026-11-16T10:00:00.250Z'),
      },
    ]);
  });

  test('find returns the live rows with the given VM names in all namespaces', async () => {
    const env = await create();
    const { ssvirt } = env;
    for (const namespace of ['tenant', 'other', null])
      await ssvirt.insertVm({ namespace, name: 'web', id: `web-${namespace}` });
    await ssvirt.insertVm({ namespace: 'tenant', name: 'db', id: 'db' });
    await ssvirt.insertVm({ namespace: 'tenant', name: 'web', id: 'deleted' });
    await ssvirt.query(`UPDATE vms SET deleted_at = now() WHERE id = 'deleted'`);
    const session = await env.open();
    const idsOf = async (names: readonly string[]) => (await session.find(names)).map(({ id }) => id).sort();
    expect(await idsOf(['web'])).toEqual(['web-null', 'web-other', 'web-tenant']);
    expect(await idsOf(['db', 'none', `'; DROP TABLE vms; --`])).toEqual(['db']);
    expect(await idsOf([])).toEqual([]);
    expect(await idsOf(['db', ...Array.from({ length: 10_000 }, (_, at) => `vm-${at}`)])).toEqual(['db']);
  });
});

describe.each(['session', 'table'] as const)('writing with the fence %s', (fence) => {
  /** Creates a database with rows `a`, `b`, … that have these statuses. */
  async function start(...statuses: readonly (string | null)[]) {
    const env = await create();
    for (const [at, status] of statuses.entries()) {
      const id = String.fromCharCode(97 + at);
      await env.ssvirt.insertVm({ namespace: 'tenant', name: `vm-${id}`, id, status, age: 3_600 });
    }
    const session = await env.openHolder({ fence });
    const read = (id: string) =>
      env.ssvirt.query('SELECT * FROM vms WHERE id = $1', [id]).then(([row]) => ({ ...row }));
    return { ...env, session, read };
  }

  test('a batch reports which rows were written and which were skipped', async () => {
    const { session, ssvirt, connect } = await start('POWERED_OFF', 'POWERED_ON', 'LOCKED', 'DELETED', null);
    await ssvirt.query(`UPDATE vms SET deleted_at = now() WHERE id = 'd'`);
    const other = await connect();
    await other.query(`BEGIN; SELECT 1 FROM vms WHERE id = 'c' FOR UPDATE`);
    const result = await session.write(poweredOn('a', 'b', 'c', 'd', 'missing', 'e'), [0]);
    expect(result).toEqual({ written: [0, 5], skipped: [2, 3, 4] });
    await other.query('ROLLBACK');
    const rows = await ssvirt.query('SELECT id, status FROM vms ORDER BY id');
    expect(rows.map(({ id, status }) => `${id} ${status}`)).toEqual([
      'a POWERED_ON',
      'b POWERED_ON',
      'c LOCKED',
      'd DELETED',
      'e POWERED_ON',
    ]);
    expect(await session.write(poweredOn('c'), [0])).toEqual({ written: [0], skipped: [] });
  });

  test('a batch writes all other rows while one is locked, and leaves lock_timeout unchanged', async () => {
    const { session, ssvirt, connect, ...env } = await start();
    const ids = await insertMany({ ssvirt, connect, ...env }, 100);
    const other = await connect();
    await other.query(`BEGIN; UPDATE vms SET description = 'locked' WHERE id = 'r00050'`);
    const { written, skipped } = await session.write(poweredOn(...ids), [0]);
    expect([written.length, skipped]).toEqual([99, [49]]);
    await other.query('COMMIT');
    expect(await session.write(poweredOn(...ids), [0])).toEqual({ written: [49], skipped: [] });
    // If the whole table is locked, for example by a migration of the schema, the batch waits instead of failing.
    await other.query('BEGIN; LOCK TABLE vms');
    const writing = session.write([{ id: 'r00001', status: 'POWERED_OFF' }], [0]);
    const isWaiting = async () =>
      (
        await ssvirt.query(
          `SELECT 1 AS one FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
        )
      ).length > 0;
    await expect.poll(isWaiting).toBe(true);
    await other.query('COMMIT');
    expect(await writing).toEqual({ written: [0], skipped: [] });
  });

  test('a batch reports exactly the rows that it wrote, even while another client changes the same rows', async () => {
    const { session, ssvirt, connect, ...env } = await start();
    const ids = await insertMany({ ssvirt, connect, ...env }, 200);
    const other = await connect();
    let isDone = false;
    const changing = (async () => {
      // Each transaction sleeps while it locks the rows, so that the batches meet locked rows even on a busy machine.
      for (let round = 0; !isDone; round++)
        await other.query(
          `BEGIN; UPDATE vms SET description = 'round ${round}' WHERE id > 'r00${round % 2}'; SELECT pg_sleep(0.001); COMMIT`,
        );
    })();
    let skips = 0;
    for (let round = 0; round < 200; round++) {
      const status = `S-${round}`;
      const writes = ids.map((id) => ({ id, status }));
      const { written, skipped } = await session.write(writes, [0]);
      skips += skipped.length;
      expect(new Set([...written, ...skipped]).size).toBe(ids.length);
      const rows = await ssvirt.query('SELECT id FROM vms WHERE status = $1 ORDER BY id', [status]);
      expect(rows.map(({ id }) => id)).toEqual(written.map((at) => ids[at]).sort());
    }
    isDone = true;
    await changing;
    expect(skips, 'the other client has locked rows').toBeGreaterThan(0);
  });

  test('if a shard is released during a write, the release waits until the write has skipped the locked rows and written the others', async () => {
    const { session, connect } = await start('POWERED_OFF', 'POWERED_OFF');
    const other = await connect();
    // The first statement of the write fails, because row `a` is locked. The second statement skips this row.
    await other.query(`BEGIN; SELECT 1 FROM vms WHERE id = 'a' FOR UPDATE`);
    const writing = session.write(poweredOn('a', 'b'), [0]);
    const releasing = session.release([0]);
    expect(await writing).toEqual({ written: [1], skipped: [0] });
    await releasing;
    expect((await failureOf(session.write(poweredOn('b'), [0]))).code).toBe('FENCE_LOST');
  });

  test('a batch does not skip a row that another transaction locks for a foreign key', async () => {
    const { session, connect, ssvirt } = await start('POWERED_OFF');
    await ssvirt.query('CREATE TABLE tasks (vm varchar REFERENCES vms)');
    const other = await connect();
    await other.query(`BEGIN; INSERT INTO tasks VALUES ('a')`);
    expect(await session.write(poweredOn('a'), [0])).toEqual({ written: [0], skipped: [] });
  });

  test('a batch changes only status and updated_at, and nothing if the row already has the status', async () => {
    const { session, read } = await start('POWERED_OFF');
    const before = await read('a');
    await session.write(poweredOn('a'), [0]);
    const after = await read('a');
    expect(after).toEqual({ ...before, status: 'POWERED_ON', updated_at: after.updated_at });
    expect(Number(after.updated_at)).toBeGreaterThan(Number(before.updated_at));
    await session.write(poweredOn('a'), [0]);
    expect(await read('a')).toEqual(after);
  });

  test('a batch never moves updated_at back, and sets it if it is null', async () => {
    const { session, ssvirt, read } = await start('POWERED_OFF', 'POWERED_OFF');
    await ssvirt.query(`UPDATE vms SET updated_at = '2099-01-01Z' WHERE id = 'a'`);
    await ssvirt.query(`UPDATE vms SET updated_at = NULL WHERE id = 'b'`);
    expect(await session.write(poweredOn('a', 'b'), [0])).toEqual({ written: [0, 1], skipped: [] });
    expect((await read('a')).updated_at).toEqual(new Date('2099-01-01Z'));
    expect((await read('b')).updated_at).toBeInstanceOf(Date);
  });

  test('a batch of the maximum size is written', async () => {
    const { session, ssvirt, ...env } = await start();
    const ids = await insertMany({ ssvirt, ...env }, 2_500);
    const { written, skipped } = await session.write(poweredOn(...ids), [0]);
    expect([written.length, skipped]).toEqual([2_500, []]);
    const [row] = await ssvirt.query(`SELECT count(*)::int AS count FROM vms WHERE status = 'POWERED_ON'`);
    expect(row).toEqual({ count: 2_500 });
  });

  test.each([
    [
      'a constraint',
      '23514',
      `ALTER TABLE vms ADD CONSTRAINT no_bad CHECK (id <> 'c' OR status <> 'POWERED_ON')`,
    ],
    ['an error that a trigger raises', 'P0001', triggerOf(`RAISE EXCEPTION 'c is frozen'`)],
    ['a data exception in a trigger', '22012', triggerOf('PERFORM 1 / 0')],
  ])(
    'a batch reports a row that the database rejects because of %s, and writes all other rows',
    async (_, code, ddl) => {
      const { session, ssvirt } = await start(...Array<string>(6).fill('POWERED_OFF'));
      await ssvirt.query(ddl);
      expect(await failureOf(session.write(poweredOn('a', 'c'), [0]))).toMatchObject({ code, scope: 'rows' });
      expect(await ssvirt.status('a')).toBe('POWERED_OFF');
      const results = await writeBatch(session, poweredOn('a', 'b', 'c', 'd', 'e', 'f'), [0]);
      expect(results.map(({ type }) => type)).toEqual([
        ...['written', 'written', 'rejected', 'written', 'written', 'written'],
      ]);
      expect(results[2]).toMatchObject({ error: { code } });
      const rows = await ssvirt.query(`SELECT id FROM vms WHERE status = 'POWERED_ON' ORDER BY id`);
      expect(rows.map(({ id }) => id)).toEqual(['a', 'b', 'd', 'e', 'f']);
    },
  );

  test('a batch is rejected if the session does not hold all shards of the batch', async () => {
    const { session, ssvirt } = await start('POWERED_OFF');
    for (const shards of [[1], [0, 1]])
      expect(await failureOf(session.write(poweredOn('a'), shards))).toMatchObject({
        code: 'FENCE_LOST',
        scope: 'fence',
      });
    expect(await ssvirt.status('a')).toBe('POWERED_OFF');
    await session.acquire([1, 2], true, NEVER);
    await session.check();
    expect(await session.write(poweredOn('a'), [0, 1])).toEqual({ written: [0], skipped: [] });
    await session.release([1]);
    await session.check();
    expect((await failureOf(session.write(poweredOn('a'), [1]))).code).toBe('FENCE_LOST');
    await session.write(poweredOn('a'), [0, 2]);
  });

  test('a batch works with minimal privileges, and reports a missing privilege with the table and a remedy', async () => {
    const { session: creator, ssvirt, role, openHolder, open } = await start('POWERED_OFF');
    // The server process of a closed session may hold the shard for some time. `openHolder` would try to terminate the
    // process, but the role below may not terminate a superuser's process. So the shard is released first.
    await creator.release([0]);
    await creator[Symbol.asyncDispose]();
    const fenceTable = fence === 'table' ? [`SELECT, INSERT, UPDATE ON ${FENCE_TABLE}`] : [];
    const minimal = { fence, ...(await role(...MINIMAL, ...fenceTable)) };
    await openHolder(minimal); // the next session takes the shard over
    const session = await openHolder(minimal);
    expect((await pagesOf(session)).flat()).toHaveLength(1);
    expect(await session.find(['vm-a'])).toHaveLength(1);
    expect(await session.write(poweredOn('a'), [0])).toEqual({ written: [0], skipped: [] });
    await session.check();
    expect(await ssvirt.status('a')).toBe('POWERED_ON');
    await session[Symbol.asyncDispose]();
    const denied = {
      code: '42501',
      scope: 'session',
      message: 'permission denied for table vms; grant the missing privilege (docs/mirror.md)',
    };
    const reader = await openHolder({ fence, ...(await role('SELECT ON vms', ...fenceTable)) });
    expect(await failureOf(reader.write(poweredOn('a'), [0]))).toEqual(denied);
    expect(await failureOf((await open(await role())).find(['vm-a']))).toEqual(denied);
  });

  test('a batch fails with the scope "session" while the database is read-only', async () => {
    const { name, ssvirt, open } = await start('POWERED_OFF');
    await ssvirt.query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
    const session = await open({ fence });
    expect((await pagesOf(session)).flat()).toHaveLength(1);
    const failure = await failureOf(
      session.acquire([7], true, NEVER).then(() => session.write(poweredOn('a'), [7])),
    );
    expect(failure).toMatchObject({ code: '25006', scope: 'session' });
    expect(failure.message).toMatch(
      /read-only transaction; check that the address leads to the primary server$/,
    );
  });
});

/** Returns a trigger that runs a statement before an update of row `c`. */
function triggerOf(statement: string): string {
  return `CREATE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${statement}; RETURN NEW; END $$;
    CREATE TRIGGER act BEFORE UPDATE ON vms FOR EACH ROW WHEN (OLD.id = 'c') EXECUTE FUNCTION act()`;
}

/** Makes updates of row `c` wait until the returned gate is opened. */
async function gateOf({ ssvirt, connect }: MirrorDatabase) {
  await ssvirt.insertVm({ namespace: 'tenant', name: 'vm-c', id: 'c', status: 'POWERED_OFF' });
  await ssvirt.query(triggerOf('PERFORM pg_advisory_xact_lock_shared(42)'));
  const gate = await connect();
  await gate.query('SELECT pg_advisory_lock(42)');
  return {
    open: () => gate.query('SELECT pg_advisory_unlock(42)'),
    /**
     * Resolves when a session of this replica waits for a lock. Ignores the first statement of a batch while it waits
     * for the gate: its lock timeout makes it fail soon, and all its locks are then released.
     */
    isWaiting: (identity: string) =>
      expect
        .poll(() =>
          ssvirt.query(
            `SELECT 1 AS one FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'
               AND NOT (wait_event = 'advisory' AND query LIKE '%lock_timeout%')`,
            [`ssvirt-vm-controller ${identity}`],
          ),
        )
        .toEqual([{ one: 1 }]),
  };
}

describe('the fence of session-level advisory locks', () => {
  /** Opens a second session with its own clock. The session tries to acquire the shard every 200 ms. */
  async function challenger({ open, ssvirt }: MirrorDatabase) {
    const clock = new VirtualClock();
    const session = await open({ clock, identity: 'second' });
    const hasTried = () => expect.poll(() => clock.timers).toBe(1);
    /** Advances the clock, so that the session tries to acquire the shard for this time. */
    const tryFor = async (ms: number) => {
      await hasTried();
      for (let passed = 0; passed < ms; passed += 200) {
        clock.advance(200);
        await hasTried();
      }
    };
    /**
     * Waits until the server process of the previous holder has ended, and lets the session try once more. A
     * terminated process first sends an error to its client, and releases its locks some time later.
     */
    const tryAfterEnd = async (acquiring: Promise<void>) => {
      await expect
        .poll(() =>
          ssvirt.query(
            `SELECT application_name FROM pg_stat_activity WHERE datname = current_database()
               AND application_name LIKE 'ssvirt-vm-controller %' AND application_name NOT LIKE '% second'`,
          ),
        )
        .toEqual([]);
      clock.advance(200);
      await acquiring;
    };
    return { session, clock, tryFor, tryAfterEnd };
  }

  test('a second session waits until the first releases the shard', async () => {
    const env = await create();
    await env.ssvirt.insertVm({ namespace: 'tenant', name: 'web', id: 'a' });
    const first = await env.openHolder();
    const { session: second, clock, tryFor } = await challenger(env);
    const acquiring = second.acquire([0], false, NEVER);
    await tryFor(10_000);
    await first.check();
    expect(await first.write(poweredOn('a'), [0])).toMatchObject({ written: [0] });
    await first.release([0]);
    clock.advance(200);
    await acquiring;
    expect(await failureOf(first.write([{ id: 'a', status: 'ERROR' }], [0]))).toEqual({
      code: 'FENCE_LOST',
      scope: 'fence',
      message:
        'the session no longer holds its advisory lock: another replica has taken over, or a pooler in transaction mode distributes its statements over several server sessions (use the fence "table")',
    });
    expect(await env.ssvirt.status('a')).toBe('POWERED_ON');
    await second.write([{ id: 'a', status: 'POWERED_OFF' }], [0]);
    expect(await env.ssvirt.status('a')).toBe('POWERED_OFF');
  });

  test('a second session gets the shard when the first is closed', async () => {
    const env = await create();
    const first = await env.openHolder();
    await first[Symbol.asyncDispose]();
    // The dispose call waits at most a second for the server process, so the process may still hold the lock.
    const locks = `SELECT pid FROM pg_locks JOIN pg_database ON database = pg_database.oid
      WHERE locktype = 'advisory' AND datname = current_database()`;
    await expect.poll(() => env.ssvirt.query(locks)).toEqual([]);
    const { session } = await challenger(env);
    await session.acquire([0], false, NEVER);
    expect(await failureOf(first.check())).toMatchObject({ code: 'CLOSED', scope: 'session' });
  });

  test('a successor ends the session of a holder that does not release the shard within two seconds', async () => {
    const env = await create();
    await env.ssvirt.insertVm({ namespace: 'tenant', name: 'web', id: 'a' });
    const first = await env.openHolder();
    const { session: second, clock, tryFor, tryAfterEnd } = await challenger(env);
    const acquiring = second.acquire([0], true, NEVER);
    await tryFor(1_800);
    await first.check();
    clock.advance(200);
    await expect.poll(() => clock.timers).toBe(1);
    expect((await failureOf(first.write(poweredOn('a'), [0]))).scope).toBe('session');
    expect(await env.ssvirt.status('a')).toBe('INSTANTIATING');
    await tryAfterEnd(acquiring);
    await second.check();
    await second.write(poweredOn('a'), [0]);
    expect(await env.ssvirt.status('a')).toBe('POWERED_ON');
  });

  test('a batch that is in flight when the session is ended is rolled back', async () => {
    const env = await create();
    const gate = await gateOf(env);
    const first = await env.openHolder({ identity: 'first' });
    const writing = failureOf(first.write(poweredOn('c'), [0]));
    await gate.isWaiting('first');
    const second = await env.openHolder({ identity: 'second' });
    expect(await writing).toMatchObject({ code: '57P01', scope: 'session' });
    const [row] = (await pagesOf(second)).flat();
    expect(row?.status).toBe('POWERED_OFF');
    await gate.open();
    await second.write([{ id: 'c', status: 'ERROR' }], [0]);
    expect(await env.ssvirt.status('c')).toBe('ERROR');
  });

  test('a successor sees the rows of a batch that was in flight when the shard was released', async () => {
    const env = await create();
    const gate = await gateOf(env);
    const first = await env.openHolder({ identity: 'first' });
    const writing = first.write(poweredOn('c'), [0]);
    const releasing = first.release([0]); // queued behind both statements of the batch
    await gate.isWaiting('first');
    const { session: second, clock, tryFor } = await challenger(env);
    const acquiring = second.acquire([0], false, NEVER);
    await tryFor(1_000);
    await gate.open();
    expect(await writing).toMatchObject({ written: [0] });
    await releasing;
    clock.advance(200);
    await acquiring;
    const [row] = (await pagesOf(second)).flat();
    expect(row?.status).toBe('POWERED_ON');
  });

  test('a wait for the shard ends when its signal aborts', async () => {
    const env = await create();
    const first = await env.openHolder();
    const { session, tryFor } = await challenger(env);
    const stop = new AbortController();
    const acquiring = session.acquire([0], true, stop.signal);
    await tryFor(200);
    stop.abort(new Error('the term has ended'));
    await expect(acquiring).rejects.toThrow('the term has ended');
    await first.check();
  });

  test('sessions hold shards independently, and a session that ends loses all its shards', async () => {
    const env = await create();
    const first = await env.open();
    await first.acquire([1, 2], false, NEVER);
    const { session: second, tryFor, tryAfterEnd } = await challenger(env);
    await second.acquire([3], false, NEVER);
    const acquiring = second.acquire([2, 4], true, NEVER);
    await tryFor(2_000);
    await tryAfterEnd(acquiring);
    await second.check();
    expect((await failureOf(first.check())).scope).toBe('session');
    const third = await env.open();
    await third.acquire([1], false, NEVER);
  });

  test('a lock of the same shard in another database does not block an acquisition', async () => {
    const [one, other] = [await create(), await create()];
    const [first, second] = [await one.openHolder(), await other.openHolder()];
    await first.check();
    await second.check();
  });

  test('statements that a pooler distributes over server sessions are rejected', async () => {
    const env = await create();
    const [locking, writing] = [queryOf(await env.connect()), queryOf(await env.connect())];
    const fence = new SessionLockFence(new VirtualClock());
    await fence.acquire(locking, [0, 1], false, NEVER);
    const isHeld = async (query: Query) => (await query(fence.guard, fence.guardValues([0, 1])))[0]?.ok;
    expect(await isHeld(locking)).toBe(true);
    expect(await isHeld(writing)).toBe(false);
  });

  test('two replicas that share a server session through a pooler never both hold the shard', async () => {
    const env = await create();
    const shared = queryOf(await env.connect());
    const [first, second] = [
      new SessionLockFence(new VirtualClock()),
      new SessionLockFence(new VirtualClock()),
    ];
    const isHeld = async (fence: SessionLockFence) =>
      (await shared(fence.guard, fence.guardValues([0])))[0]?.ok;
    await first.acquire(shared, [0], true, NEVER);
    expect([await isHeld(first), await isHeld(second)]).toEqual([true, false]);
    await second.acquire(shared, [0], true, NEVER);
    expect([await isHeld(first), await isHeld(second)]).toEqual([false, true]);
  });
});

function queryOf(client: pg.Client): Query {
  return async (text, values) => (await client.query<Record<string, unknown>>(text, [...values])).rows;
}

describe('the fence table', () => {
  const fence = 'table';
  const epochs = async ({ ssvirt }: MirrorDatabase) =>
    (await ssvirt.query(`SELECT shard, epoch, holder FROM ${FENCE_TABLE} ORDER BY shard`)).map(
      ({ shard, epoch, holder }) => `${shard} ${epoch} ${holder}`,
    );

  test('each acquisition increments the epoch, and earlier holders cannot write', async () => {
    const env = await create();
    await env.ssvirt.insertVm({ namespace: 'tenant', name: 'web', id: 'a' });
    const first = await env.openHolder({ fence, identity: 'first' });
    expect(await epochs(env)).toEqual(['0 1 first']);
    const second = await env.openHolder({ fence, identity: 'second' });
    expect(await epochs(env)).toEqual(['0 2 second']);
    const lost = {
      code: 'FENCE_LOST',
      scope: 'fence',
      message: 'another replica has acquired the shard: its epoch in the fence table has changed',
    };
    expect(await failureOf(first.write(poweredOn('a'), [0]))).toEqual(lost);
    expect(await failureOf(first.check())).toEqual(lost);
    expect(await env.ssvirt.status('a')).toBe('INSTANTIATING');
    await second.check();
    await second.write(poweredOn('a'), [0]);
    expect(await env.ssvirt.status('a')).toBe('POWERED_ON');
    await first.acquire([0], true, NEVER);
    expect(await epochs(env)).toEqual(['0 3 first']);
    expect((await failureOf(second.check())).code).toBe('FENCE_LOST');
  });

  test('a session that has not acquired the shard cannot write, even after the holder has closed its session', async () => {
    const env = await create();
    const first = await env.openHolder({ fence });
    await first[Symbol.asyncDispose]();
    const second = await env.open({ fence });
    expect((await failureOf(second.write([], [0]))).code).toBe('FENCE_LOST');
  });

  test('an acquisition waits for a batch of the previous holder, and then sees the rows that the batch wrote', async () => {
    const env = await create();
    const gate = await gateOf(env);
    const first = await env.openHolder({ fence, identity: 'first' });
    const writing = first.write(poweredOn('c'), [0]);
    await gate.isWaiting('first');
    const second = await env.open({ fence, identity: 'second' });
    const acquiring = second.acquire([0], true, NEVER);
    await gate.isWaiting('second');
    await gate.open();
    expect(await writing).toMatchObject({ written: [0] });
    await acquiring;
    const [row] = (await pagesOf(second)).flat();
    expect(row?.status).toBe('POWERED_ON');
    expect((await failureOf(first.write(poweredOn('c'), [0]))).code).toBe('FENCE_LOST');
  });

  test('a batch waits while a successor acquires the shard, and is then rejected', async () => {
    const env = await create();
    const gate = await gateOf(env);
    await gate.open();
    const first = await env.openHolder({ fence, identity: 'first' });
    const successor = await env.connect();
    await successor.query(`BEGIN; UPDATE ${FENCE_TABLE} SET epoch = epoch + 1`);
    const writing = failureOf(first.write(poweredOn('c'), [0]));
    await gate.isWaiting('first');
    await successor.query('COMMIT');
    expect((await writing).code).toBe('FENCE_LOST');
    expect(await env.ssvirt.status('c')).toBe('POWERED_OFF');
  });

  test('batches of one holder do not wait for each other', async () => {
    const env = await create();
    const gate = await gateOf(env);
    await env.ssvirt.insertVm({ namespace: 'tenant', name: 'web', id: 'a' });
    const session = await env.openHolder({ fence, identity: 'first' });
    const writing = session.write(poweredOn('c'), [0]);
    await gate.isWaiting('first');
    const other = queryOf(await env.connect());
    const guard = new EpochFence('x').guard;
    expect(await other(guard, [[0], ['1']])).toEqual([{ ok: true }]);
    await gate.open();
    await writing;
  });

  test('concurrent first acquisitions create the table once and get different epochs', async () => {
    const env = await create();
    const sessions = await Promise.all(
      Array.from({ length: 8 }, (_, at) => env.open({ fence, identity: `replica-${at}` })),
    );
    await Promise.all(sessions.map((session) => session.acquire([0, 1], true, NEVER)));
    const [row] = await env.ssvirt.query(
      `SELECT min(epoch)::int AS least, max(epoch)::int AS most FROM ${FENCE_TABLE}`,
    );
    expect(row).toEqual({ least: 8, most: 8 });
    const holding = await Promise.all(
      sessions.map((session) =>
        session.write([], [0]).then(
          () => 1,
          () => 0,
        ),
      ),
    );
    expect(holding.filter((held) => held === 1)).toHaveLength(1);
  });

  test('statements that a pooler distributes over server sessions are accepted', async () => {
    const env = await create();
    const [acquiring, writing] = [queryOf(await env.connect()), queryOf(await env.connect())];
    const epoch = new EpochFence('pooled');
    await epoch.acquire(acquiring, [0, 1]);
    expect(await writing(epoch.guard, epoch.guardValues([0, 1]))).toEqual([{ ok: true }]);
    expect([...epoch.held]).toEqual([0, 1]);
    await epoch.release(writing, [1]);
    expect(await writing(epoch.guard, epoch.guardValues([1]))).toEqual([{ ok: false }]);
  });

  test('an existing fence table is used if the role may not create one', async () => {
    const env = await create();
    await env.ssvirt.query(FENCE_TABLE_DDL);
    const role = await env.role(...MINIMAL, `SELECT, INSERT, UPDATE ON ${FENCE_TABLE}`);
    await env.ssvirt.query('REVOKE CREATE ON SCHEMA public FROM PUBLIC');
    const session = await env.openHolder({ fence, ...role, identity: 'restricted' });
    await session.check();
    expect(await epochs(env)).toEqual(['0 1 restricted']);
  });

  test('if the fence table is missing and the role may not create it, the error of an acquisition contains a remedy', async () => {
    const env = await create();
    const role = await env.role(...MINIMAL);
    expect(await failureOf(env.openHolder({ fence, ...role }))).toEqual({
      code: '42501',
      scope: 'session',
      message: 'permission denied for schema public; grant the missing privilege (docs/mirror.md)',
    });
  });
});

describe('failures have a code, a scope and a remedy', () => {
  const opening = async (options: Parameters<MirrorDatabase['access']>[0]) =>
    failureOf((await create()).access(options).open(NEVER));

  test('a wrong password causes an error with the scope "session"', async () => {
    expect(await opening({ password: async () => 'wr0ng' })).toEqual({
      code: '28P01',
      scope: 'session',
      message: 'password authentication failed for user "vmwright"; check the user name and the password',
    });
  });

  test('a missing password causes an error with the scope "session"', async () => {
    const { scope, message } = await opening({ password: async () => undefined });
    expect(scope).toBe('session');
    expect(message).toMatch(/password/);
  });

  test('an unknown database causes an error with the scope "session"', async () => {
    expect(await opening({ database: 'no_such_database' })).toEqual({
      code: '3D000',
      scope: 'session',
      message: 'database "no_such_database" does not exist; check the name of the database',
    });
  });

  test.each(['127.0.0.1', 'localhost'])(
    'a missing server at %s causes an error with the scope "session"',
    async (host) => {
      const { code, scope, message } = await opening({ host, port: await freePort() });
      expect([code, scope]).toEqual(['ECONNREFUSED', 'session']);
      expect(message).toMatch(/ECONNREFUSED 127.0.0.1:\d+.*; check the address, and that the server runs$/);
    },
  );

  test('an unknown host causes an error with the scope "session"', async () => {
    const { code, scope, message } = await opening({ host: 'no-such-host.invalid' });
    expect(['ENOTFOUND', 'EAI_AGAIN']).toContain(code);
    expect(scope).toBe('session');
    expect(message).toMatch(/no-such-host.invalid; check the host name$/);
  });

  test('a server other than PostgreSQL causes an error with the scope "session"', async () => {
    await using server = createServer((socket) => socket.resume().end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    server.listen(await freePort(), '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    expect(await opening({ port })).toMatchObject({ scope: 'session' });
  });

  test('a missing table causes an error with the scope "session"', async () => {
    const env = await create();
    const session = await env.openHolder();
    await env.ssvirt.query('ALTER TABLE vms RENAME TO machines');
    const expected = {
      code: '42P01',
      scope: 'session',
      message:
        'relation "vms" does not exist; check that the schema of SSVirt is installed in this database and on the search path',
    };
    expect(await failureOf(pagesOf(session))).toEqual(expected);
    expect(await failureOf(session.find(['web']))).toEqual(expected);
    expect(await failureOf(session.write(poweredOn('a'), [0]))).toEqual(expected);
    await env.ssvirt.query('ALTER TABLE machines RENAME TO vms');
    expect(await session.find(['web'])).toEqual([]);
  });

  test('a missing column causes an error with the scope "session"', async () => {
    const env = await create();
    const session = await env.open();
    await env.ssvirt.query('ALTER TABLE vms RENAME COLUMN vm_name TO label');
    expect(await failureOf(pagesOf(session))).toEqual({
      code: '42703',
      scope: 'session',
      message: 'column "vm_name" does not exist; check that the schema of SSVirt has the expected columns',
    });
  });

  test('after a change of a column type, a prepared statement fails with the scope "session"', async () => {
    const env = await create();
    await env.ssvirt.insertVm({ namespace: 'tenant', name: 'web', id: 'a' });
    const session = await env.open();
    expect(await session.find(['web'])).toHaveLength(1);
    await env.ssvirt.query('ALTER TABLE vms ALTER COLUMN vm_name TYPE varchar(253)');
    expect(await failureOf(session.find(['web']))).toMatchObject({ code: '0A000', scope: 'session' });
    const next = await env.openHolder();
    expect(await next.find(['web'])).toHaveLength(1);
    expect(await next.write(poweredOn('a'), [0])).toEqual({ written: [0], skipped: [] });
  });

  test('too many connections cause an error with the scope "session"', async () => {
    const env = await create();
    const role = await env.role();
    await env.ssvirt.query(`ALTER ROLE ${role.user} CONNECTION LIMIT 0`);
    expect(await failureOf(env.open(role))).toEqual({
      code: '53300',
      scope: 'session',
      message: `too many connections for role "${role.user}"; raise max_connections of the server, or connect through a pooler`,
    });
  });

  test('a statement timeout causes an error with the scope "session"', async () => {
    const env = await create();
    const other = await env.connect();
    await other.query('BEGIN; LOCK TABLE vms');
    // The timeout is set on a client that is already connected: on a busy machine, the statements that open a session
    // can exceed the timeout, too.
    const client = await env.connect();
    await client.query(`SET statement_timeout = '100ms'`);
    const session = new PostgresSession(client, new EpochFence('impatient'), nodeWorld);
    expect(await failureOf(session.find(['web']))).toMatchObject({
      code: '57014',
      scope: 'session',
      message: expect.stringContaining('canceling statement due to statement timeout'),
    });
  });

  test.each([
    ['session', '30s'],
    ['table', '1h'],
  ] as const)('with the fence %s, statement_timeout 1h of the role becomes %s', async (fence, timeout) => {
    const env = await create();
    await env.ssvirt.insertVm({ namespace: 'tenant', name: 'vm-c', id: 'c', status: 'POWERED_OFF' });
    await env.ssvirt.query(triggerOf(`NEW.description := current_setting('statement_timeout')`));
    await env.ssvirt.query(FENCE_TABLE_DDL);
    const role = await env.role(...MINIMAL, `SELECT, INSERT, UPDATE ON ${FENCE_TABLE}`);
    await env.ssvirt.query(`ALTER ROLE ${role.user} SET statement_timeout = '1h'`);
    const session = await env.openHolder({ ...role, fence });
    await session.write(poweredOn('c'), [0]);
    expect(await env.ssvirt.query('SELECT description FROM vms')).toEqual([{ description: timeout }]);
  });

  test('every call of a session that the server has ended fails with the scope "session"', async () => {
    const env = await create();
    const session = await env.openHolder({ identity: 'ended' });
    await env.ssvirt.query(
      `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'ssvirt-vm-controller ended'`,
    );
    for (let call = 0; call < 3; call++)
      expect(await failureOf(session.check())).toMatchObject({ scope: 'session' });
  });
});

describe('connecting', () => {
  test('a new connection uses a password that was rotated after the first session was opened', async () => {
    const env = await create();
    const role = await env.role(...MINIMAL);
    let password = await role.password();
    const access = env.access({ user: role.user, password: async () => password });
    await using first = await access.open(NEVER);
    await env.ssvirt.query(`ALTER ROLE ${role.user} PASSWORD 'r0tated'`);
    await first.find(['web']);
    expect(await failureOf(access.open(NEVER))).toMatchObject({ code: '28P01' });
    password = 'r0tated';
    await using second = await access.open(NEVER);
    await second.find(['web']);
    await first.find(['web']);
  });

  test('a new connection reports a password that cannot be read', async () => {
    const env = await create();
    const password = () => Promise.reject(new Error('the password file /p cannot be read'));
    expect(await failureOf(env.open({ password }))).toMatchObject({
      scope: 'session',
      message: 'the password file /p cannot be read',
    });
  });

  test('a new connection ends when its signal aborts while the server does not answer', async () => {
    await using server = createServer(() => undefined).listen(await freePort(), '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const accepted = once(server, 'connection');
    const stop = new AbortController();
    const opening = (await create()).access({ port }).open(stop.signal);
    const [socket] = await accepted;
    stop.abort(new Error('the term has ended'));
    await expect(opening).rejects.toThrow('the term has ended');
    socket.destroy();
  });

  test('a new connection names the replica in pg_stat_activity', async () => {
    const env = await create();
    await env.open({ identity: 'a-long-name'.repeat(10) });
    const [row] = await env.ssvirt.query(
      `SELECT application_name FROM pg_stat_activity WHERE datname = $1 AND application_name <> ''`,
      [env.name],
    );
    expect(row?.application_name).toMatch(/^ssvirt-vm-controller a-long-namea-long-name/);
  });
});
