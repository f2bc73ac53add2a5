import { type Postgres, Ssvirt, startPostgres } from '@vmwright/testbed';
import pg from 'pg';

/** Number of namespaces that the VMs are spread over. Each VDC (virtual data center) has one namespace. */
export const NAMESPACES = 20;

/** Commit of the last write to one row of the table `vms`. */
export interface Commit {
  /** Number of the VM. */
  readonly vm: number;
  readonly status: string;
  /** Commit time in milliseconds since the Unix epoch. */
  readonly at: number;
}

const COMMITTED_AT = '(extract(epoch FROM pg_xact_commit_timestamp(xmin)) * 1000)::float8';

/** The table `vms` in a PostgreSQL server that uses fsync, as in production. */
export class Table implements AsyncDisposable {
  readonly url: string;
  readonly client: pg.Client;
  readonly #postgres: Postgres;

  private constructor(postgres: Postgres, client: pg.Client) {
    this.url = postgres.url;
    this.client = client;
    this.#postgres = postgres;
  }

  static async start(): Promise<Table> {
    await using resources = new AsyncDisposableStack();
    // `track_commit_timestamp` is on, because the lag is computed from the commit timestamps of the rows.
    const settings = { fsync: 'on', track_commit_timestamp: 'on' };
    const postgres = resources.use(await startPostgres({ settings }));
    await using _ = await Ssvirt.install(postgres);
    const client = new pg.Client(postgres.url);
    await client.connect();
    resources.move();
    return new Table(postgres, client);
  }

  /** Inserts rows for the VMs 0 to `count - 1`; see `vmName` and `namespaceOf`. */
  async fill(count: number, status: string): Promise<void> {
    await this.client.query(
      `INSERT INTO v_apps (id, name, vdc_id) SELECT 'urn:vcloud:vapp:' || gen_random_uuid(), 'vapp-' || i, vdcs.id
       FROM generate_series(0, ${NAMESPACES - 1}) AS i, vdcs`,
    );
    await this.client.query(
      `INSERT INTO vms SELECT 'urn:vcloud:vm:' || gen_random_uuid(), 'vm-' || i, 'A virtual machine of the benchmark',
         v_apps.id, 'vm-' || i, 'vdc-' || i % ${NAMESPACES}, $2, 2, 4096, 'rhel9_64Guest', now(), now(), NULL
       FROM generate_series(0, $1::int - 1) AS i JOIN v_apps ON v_apps.name = 'vapp-' || i % ${NAMESPACES}`,
      [count, status],
    );
    await this.client.query('VACUUM ANALYZE vms');
  }

  /** Resets the status of all rows and removes dead tuples, so that all runs start from the same state. */
  async reset(status: string): Promise<void> {
    await this.client.query(`UPDATE vms SET status = $1, updated_at = now() - interval '1 day'`, [status]);
    await this.client.query('VACUUM ANALYZE vms');
    await this.client.query('CHECKPOINT');
  }

  /** Returns the number of rows with the status. */
  async count(status: string): Promise<number> {
    const { rows } = await this.client.query<{ count: string }>(
      'SELECT count(*) FROM vms WHERE status = $1',
      [status],
    );
    return Number(rows[0]?.count);
  }

  /** Returns the earliest and the latest commit time of all rows, in ms since 1970. */
  async commits(): Promise<{ readonly first: number; readonly last: number }> {
    const { rows } = await this.client.query<{ first: number; last: number }>(
      `SELECT min(at) AS first, max(at) AS last FROM (SELECT ${COMMITTED_AT} AS at FROM vms) AS commits`,
    );
    const [row] = rows;
    if (row === undefined) throw new Error('the table has no rows');
    return row;
  }

  /** Returns the last commit of each row that was written in the last five seconds. */
  async recentCommits(): Promise<readonly Commit[]> {
    const { rows } = await this.client.query<Commit>(
      `SELECT substr(vm_name, 4)::int AS vm, status, ${COMMITTED_AT} AS at FROM vms
       WHERE updated_at > now() - interval '5 seconds'`,
    );
    return rows;
  }

  /** Returns the ids of all rows. */
  async ids(): Promise<readonly string[]> {
    const { rows } = await this.client.query<{ id: string }>('SELECT id FROM vms ORDER BY id');
    return rows.map(({ id }) => id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client.end();
    await this.#postgres[Symbol.asyncDispose]();
  }
}

export function vmName(i: number): string {
  return `vm-${i}`;
}

export function namespaceOf(i: number): string {
  return `vdc-${i % NAMESPACES}`;
}
