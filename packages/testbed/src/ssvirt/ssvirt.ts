import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import type { Postgres } from '../postgres/postgres.ts';

const SCHEMA = fileURLToPath(new URL('../../ssvirt/schema.sql', import.meta.url));

/** vApp of the rows that `insertVm` inserts, unless the caller names another. */
const VAPP = '11111111-1111-4111-8111-111111111111';

/** A row of the table `vms`. */
export interface VmRow {
  readonly id: string;
  readonly namespace: string | null;
  readonly vm_name: string;
  readonly status: string | null;
  readonly updated_at: Date | null;
  readonly deleted_at: Date | null;
}

export interface NewVm {
  readonly namespace: string | null;
  readonly name: string;
  /** Id of the row. @default a URN with a random UUID */
  readonly id?: string;
  /** UUID of the row's vApp, which is created if it does not exist. @default one vApp for all rows */
  readonly vapp?: string;
  /** @default INSTANTIATING */
  readonly status?: string | null;
  /** Age of the row in seconds. @default 0 */
  readonly age?: number;
}

/** Database of SSVirt: creates the schema, and inserts rows as SSVirt's API server does. */
export class Ssvirt implements AsyncDisposable {
  readonly #pool: pg.Pool;

  private constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  /** Loads the schema into an empty database. */
  static async install(postgres: Pick<Postgres, 'url'>): Promise<Ssvirt> {
    const ssvirt = await Ssvirt.connect(postgres);
    await ssvirt.query(await readFile(SCHEMA, 'utf8'));
    await ssvirt.query(`
      INSERT INTO organizations (id, name) VALUES ('urn:vcloud:org:1', 'testbed');
      INSERT INTO vdcs (id, name, organization_id) VALUES ('urn:vcloud:vdc:1', 'testbed', 'urn:vcloud:org:1');`);
    return ssvirt;
  }

  /** Connects to a database that has the schema. */
  static async connect({ url }: Pick<Postgres, 'url'>): Promise<Ssvirt> {
    const pool = new pg.Pool({ connectionString: url, max: 4 });
    pool.on('error', () => undefined); // idle connections fail when a test restarts the server
    return new Ssvirt(pool);
  }

  async query(
    text: string,
    values: readonly unknown[] = [],
  ): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const result = await (values.length === 0 ? this.#pool.query(text) : this.#pool.query(text, [...values]));
    return Array.isArray(result) ? [] : result.rows;
  }

  /** Inserts a row as SSVirt's API server does. @returns the id of the row */
  async insertVm({
    namespace,
    name,
    id,
    vapp = VAPP,
    status = 'INSTANTIATING',
    age = 0,
  }: NewVm): Promise<string> {
    await this.query(
      `INSERT INTO v_apps (id, name, vdc_id) VALUES ('urn:vcloud:vapp:' || $1, $1, 'urn:vcloud:vdc:1') ON CONFLICT DO NOTHING`,
      [vapp],
    );
    const rows = await this.query(
      `INSERT INTO vms (id, name, vapp_id, vm_name, namespace, status, created_at, updated_at)
       VALUES (coalesce($1, 'urn:vcloud:vm:' || gen_random_uuid()), $2, 'urn:vcloud:vapp:' || $3, $2, $4, $5,
         now() - make_interval(secs => $6), now() - make_interval(secs => $6)) RETURNING id`,
      [id ?? null, name, vapp, namespace, status, age],
    );
    return String(rows[0]?.id);
  }

  /** Returns the rows of a namespace, sorted by VM name and creation time. */
  async rows(namespace: string): Promise<readonly VmRow[]> {
    const { rows } = await this.#pool.query<VmRow>(
      'SELECT id, namespace, vm_name, status, updated_at, deleted_at FROM vms WHERE namespace = $1 ORDER BY vm_name, created_at',
      [namespace],
    );
    return rows;
  }

  async status(id: string): Promise<string | null> {
    const [row] = await this.query('SELECT status FROM vms WHERE id = $1', [id]);
    return row === undefined || row.status === null ? null : String(row.status);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool.end();
  }
}
