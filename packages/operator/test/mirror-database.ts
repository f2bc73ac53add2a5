import { randomUUID } from 'node:crypto';
import { nodeWorld } from '@vmwright/runtime';
import { canary, type Postgres, Ssvirt } from '@vmwright/testbed';
import pg from 'pg';
import { onTestFinished } from 'vitest';
import type { Session } from '../src/mirror/database.ts';
import { PostgresDatabase, type PostgresDatabaseOptions } from '../src/mirror/postgres/database.ts';

export const NEVER = new AbortController().signal;

/** A database with the schema of SSVirt, for one test. */
export interface MirrorDatabase {
  readonly name: string;
  readonly url: string;
  /** Connection as superuser, for queries that SSVirt's API server would send. */
  readonly ssvirt: Ssvirt;
  /** Returns the mirror's access to the database, by default as superuser. */
  access(options?: Partial<PostgresDatabaseOptions>): PostgresDatabase;
  /** Opens a session of the mirror. The session is closed when the test has finished. */
  open(options?: Partial<PostgresDatabaseOptions>): Promise<Session>;
  /** Opens a session that has acquired shard 0, so that it may write the rows of this shard. */
  openHolder(options?: Partial<PostgresDatabaseOptions>): Promise<Session>;
  /** Opens a plain connection as superuser, for transactions of other programs. */
  connect(): Promise<pg.Client>;
  /** Creates a database role that may log in and has these privileges. @returns the options to connect as this role */
  role(...grants: readonly string[]): Promise<Role>;
}

export interface Role {
  readonly user: string;
  readonly password: () => Promise<string>;
}

/** Creates a database for the current test. */
export async function createDatabase(server: Postgres): Promise<MirrorDatabase> {
  const stack = new AsyncDisposableStack();
  onTestFinished(() => stack.disposeAsync());
  const admin = stack.use(await Ssvirt.connect(server));
  const name = `test_${randomUUID().slice(0, 8)}`;
  await admin.query(`CREATE DATABASE ${name}`);
  stack.defer(() => admin.query(`DROP DATABASE ${name} WITH (FORCE)`).then(() => undefined));
  const url = new URL(server.url);
  url.pathname = `/${name}`;
  const ssvirt = stack.use(await Ssvirt.install({ url: url.href }));
  const access: MirrorDatabase['access'] = (options) => {
    const { host, port, user, password } = server;
    return new PostgresDatabase({
      host,
      port,
      user,
      database: name,
      password: async () => password,
      sslMode: 'disable',
      caFile: undefined,
      fence: 'session',
      clock: nodeWorld,
      identity: 'test',
      ...options,
    });
  };
  const open: MirrorDatabase['open'] = async (options) => stack.use(await access(options).open(NEVER));
  return {
    name,
    url: url.href,
    ssvirt,
    access,
    open,
    openHolder: async (options) => {
      const session = await open(options);
      await session.acquire([0], true, NEVER);
      return session;
    },
    connect: async () => {
      const client = new pg.Client(url.href);
      client.on('error', () => undefined);
      await client.connect();
      stack.defer(() => client.end());
      return client;
    },
    role: async (...grants) => {
      const user = `role_${randomUUID().slice(0, 8)}`;
      const password = canary('database-role-password');
      await ssvirt.query(`CREATE ROLE ${user} LOGIN PASSWORD '${password}'`);
      for (const grant of grants) await ssvirt.query(`GRANT ${grant} TO ${user}`);
      stack.defer(async () => {
        await ssvirt.query(`DROP OWNED BY ${user}; DROP ROLE ${user}`);
      });
      return { user, password: async () => password };
    },
  };
}

/**
 * Creates the table that the mirror uses with `fence: table`. The table stores which replica holds each shard. An
 * administrator runs this statement if the mirror's role may not create tables.
 */
export const FENCE_TABLE_DDL = `CREATE TABLE ssvirt_vm_controller_fence (
  shard integer PRIMARY KEY, epoch bigint NOT NULL, holder text NOT NULL, acquired_at timestamptz NOT NULL)`;
