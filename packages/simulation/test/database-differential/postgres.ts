import { PostgresDatabase } from '@vmwright/operator';
import { type Postgres, Ssvirt } from '@vmwright/testbed';
import type { FenceMode } from '../../src/database/protocol.ts';
import type { TableRow } from '../../src/database/table.ts';
import { FAST_CLOCK } from './model.ts';
import { VAPP } from './operations.ts';
import type { OtherClients } from './side.ts';

/** Installs the schema of SSVirt with a constraint that rejects the status BAD in rows with the name `rejected`. */
export async function install(postgres: Postgres): Promise<Ssvirt> {
  const ssvirt = await Ssvirt.install(postgres);
  await ssvirt.query(`INSERT INTO v_apps (id, name, vdc_id) VALUES ('urn:vcloud:vapp:${VAPP}', 'a', 'urn:vcloud:vdc:1');
    ALTER TABLE vms ADD CONSTRAINT chk_test CHECK (NOT (name = 'rejected' AND status = 'BAD')) NOT VALID`);
  return ssvirt;
}

/** Returns the mirror's production database client, connected to a real PostgreSQL server. */
export function realDatabase(
  { host, port, user, password, database }: Postgres,
  fence: FenceMode,
): PostgresDatabase {
  return new PostgresDatabase({
    host,
    port,
    user,
    database,
    fence,
    clock: FAST_CLOCK,
    identity: 'differential',
    password: async () => password,
    sslMode: 'disable',
    caFile: undefined,
  });
}

/**
 * Returns the actions of PostgreSQL clients other than the mirror's own client.
 * @param locker client with only one connection, so that a transaction can stay open between calls
 */
export function realClients(ssvirt: Ssvirt, locker: Ssvirt): OtherClients {
  return {
    insert: async ({ id, name, vappId, vmName, namespace, status, createdAt, updatedAt }) => {
      await ssvirt.query(
        `INSERT INTO vms (id, name, vapp_id, vm_name, namespace, status, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
        [id, name, vappId, vmName, namespace, status, toDate(createdAt), toDate(updatedAt)],
      );
    },
    softDelete: async (id) => {
      await ssvirt.query('UPDATE vms SET deleted_at = now() WHERE id = $1', [id]);
    },
    lock: async (id) => {
      await locker.query(`BEGIN; SELECT 1 FROM vms WHERE id = '${id}' FOR UPDATE`);
    },
    unlock: async () => {
      await locker.query('ROLLBACK');
    },
    table: async () => (await ssvirt.query('SELECT * FROM vms')).map(toRow),
  };
}

function toDate(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}

function toRow(row: Readonly<Record<string, unknown>>): TableRow {
  const text = (value: unknown) => (value === null ? null : String(value));
  const time = (value: unknown) => (value instanceof Date ? value.getTime() : null);
  return {
    id: String(row.id),
    name: String(row.name),
    vappId: String(row.vapp_id),
    vmName: text(row.vm_name),
    namespace: text(row.namespace),
    status: text(row.status),
    createdAt: time(row.created_at),
    updatedAt: time(row.updated_at),
    deletedAt: time(row.deleted_at),
  };
}
