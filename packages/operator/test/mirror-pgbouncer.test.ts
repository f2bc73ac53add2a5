import {
  type PgBouncer,
  type Postgres,
  startPgBouncer,
  startPostgres,
  TestbedError,
} from '@vmwright/testbed';
import pg from 'pg';
import { afterAll, test as base, beforeAll, describe, expect } from 'vitest';
import type { StatusWrite } from '../src/mirror/database.ts';
import { createDatabase, type MirrorDatabase } from './mirror-database.ts';

/*
 * Tests through a real PgBouncer that the mirror's fences reject writes of a replica that another replica has replaced.
 * Skipped where the Debian package of PgBouncer is not available. In that case, `mirror-postgres.test.ts` still covers
 * the same statements: it distributes them over server sessions itself.
 */

const IDS = Array.from({ length: 20 }, (_, at) => `vm-${at}`);

let postgres: Postgres;
let transactional: PgBouncer | undefined;
let sessional: PgBouncer | undefined;
let whyNot = '';

beforeAll(async () => {
  postgres = await startPostgres();
  try {
    transactional = await startPgBouncer({ postgres, poolMode: 'transaction' });
    sessional = await startPgBouncer({ postgres, poolMode: 'session' });
  } catch (error) {
    if (!(error instanceof TestbedError && error.code === 'ASSET_UNAVAILABLE')) throw error;
    whyNot = error.message;
  }
});
afterAll(async () => {
  await transactional?.[Symbol.asyncDispose]();
  await sessional?.[Symbol.asyncDispose]();
  await postgres[Symbol.asyncDispose]();
});

/** A test with its own database. */
const test = (title: string, run: (env: MirrorDatabase) => Promise<void>) =>
  base(title, async ({ skip }) => {
    if (whyNot !== '') skip(whyNot);
    const env = await createDatabase(postgres);
    for (const name of IDS) await env.ssvirt.insertVm({ namespace: 'tenant', name, id: name });
    await run(env);
  });

const addressOf = (pooler: PgBouncer | undefined) => ({ host: pooler?.host ?? '', port: pooler?.port ?? 0 });
const writes = (status: string): readonly StatusWrite[] => IDS.map((id) => ({ id, status }));
const statuses = async ({ ssvirt }: MirrorDatabase) =>
  new Set((await ssvirt.query('SELECT status FROM vms')).map(({ status }) => status));

/** Makes PgBouncer open all its server connections, by transactions that are open at the same time. */
async function useAllServerProcesses({ name }: MirrorDatabase): Promise<void> {
  const { user, password } = postgres;
  const clients = Array.from(
    { length: 3 },
    () => new pg.Client({ ...addressOf(transactional), user, password, database: name }),
  );
  await Promise.all(clients.map((client) => client.connect()));
  await Promise.all(clients.map((client) => client.query('BEGIN')));
  await Promise.all(clients.map((client) => client.query('COMMIT')));
  await Promise.all(clients.map((client) => client.end()));
}

describe('PgBouncer with transaction pooling', () => {
  const table = () => ({ ...addressOf(transactional), fence: 'table' }) as const;

  test('the fence "session" rejects a write in a server process that does not hold the lock', async (env) => {
    await useAllServerProcesses(env);
    const session = await env.openHolder({ ...addressOf(transactional), fence: 'session' });
    await expect(session.write(writes('POWERED_ON'), [0])).rejects.toMatchObject({
      code: 'FENCE_LOST',
      message: expect.stringContaining('use the fence "table"'),
    });
    expect(await statuses(env)).toEqual(new Set(['INSTANTIATING']));
  });

  test('a session with the fence "table" writes, although successive statements run in different server processes', async (env) => {
    await useAllServerProcesses(env);
    await env.ssvirt.query(`
      CREATE TABLE writers (pid int);
      CREATE FUNCTION remember() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO writers VALUES (pg_backend_pid()); RETURN new; END $$;
      CREATE TRIGGER remember AFTER UPDATE ON vms FOR EACH ROW EXECUTE FUNCTION remember();`);
    const session = await env.openHolder(table());
    for (let round = 0; round < 20; round++) {
      const status = round % 2 === 0 ? 'POWERED_ON' : 'POWERED_OFF';
      expect((await session.write(writes(status), [0])).written).toHaveLength(IDS.length);
      expect(await statuses(env)).toEqual(new Set([status]));
      await session.check();
    }
    expect((await env.ssvirt.query('SELECT DISTINCT pid FROM writers')).length).toBeGreaterThan(1);
  });

  test('the fence "table" keeps a deposed leader from writing', async (env) => {
    const old = await env.openHolder({ ...table(), identity: 'old' });
    const successor = await env.openHolder({ ...table(), identity: 'successor' });
    await expect(old.write(writes('POWERED_ON'), [0])).rejects.toMatchObject({ code: 'FENCE_LOST' });
    await expect(old.check()).rejects.toMatchObject({ code: 'FENCE_LOST' });
    await successor.write(writes('POWERED_OFF'), [0]);
    expect(await statuses(env)).toEqual(new Set(['POWERED_OFF']));
  });

  test('a batch skips a locked row, and its lock timeout does not leak to the next client', async (env) => {
    const session = await env.openHolder(table());
    const other = await env.connect();
    await other.query(`BEGIN; UPDATE vms SET name = 'locked' WHERE id = '${IDS[0]}'`);
    expect((await session.write(writes('POWERED_ON'), [0])).written).toHaveLength(IDS.length - 1);
    await other.query('COMMIT');
    expect((await session.write(writes('POWERED_ON'), [0])).written).toEqual([0]);
    for (let query = 0; query < 6; query++) await session.check();
    expect(await statuses(env)).toEqual(new Set(['POWERED_ON']));
  });

  test('after a restart of PgBouncer, a new session writes', async (env) => {
    const session = await env.openHolder(table());
    await transactional?.part.kill();
    await transactional?.part.start();
    await expect(session.write(writes('POWERED_ON'), [0])).rejects.toMatchObject({ scope: 'session' });
    const next = await env.openHolder(table());
    await next.write(writes('POWERED_ON'), [0]);
    expect(await statuses(env)).toEqual(new Set(['POWERED_ON']));
  });
});

describe('PgBouncer with session pooling', () => {
  const direct = () => ({ ...addressOf(sessional), fence: 'session' }) as const;

  test('a session with the fence "session" writes, and its successor takes over the fence', async (env) => {
    const old = await env.openHolder({ ...direct(), identity: 'old' });
    await old.write(writes('POWERED_ON'), [0]);
    const successor = await env.openHolder({ ...direct(), identity: 'successor' });
    await expect(old.write(writes('POWERED_ON'), [0])).rejects.toMatchObject({ scope: 'session' });
    await successor.write(writes('POWERED_OFF'), [0]);
    expect(await statuses(env)).toEqual(new Set(['POWERED_OFF']));
  });
});
