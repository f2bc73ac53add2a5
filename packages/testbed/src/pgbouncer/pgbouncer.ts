import { cp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { giveTo } from '../postgres/give-to.ts';
import { acceptsClients } from '../postgres/handshake.ts';
import type { Postgres } from '../postgres/postgres.ts';
import { serverUser } from '../postgres/server-user.ts';
import { Part } from '../process/part.ts';
import { freePort } from '../process/ports.ts';
import { RunSupervisor } from '../process/run-supervisor.ts';
import { pgBouncerFolder } from './program.ts';

export interface PgBouncerOptions {
  readonly postgres: Postgres;
  readonly poolMode: 'session' | 'transaction';
}

/**
 * A running PgBouncer in front of a PostgreSQL server. Clients can log in to every database as the server's superuser.
 */
export interface PgBouncer extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  readonly part: Part;
}

/**
 * Number of server connections per database. Transactions use the connections in turn, so that two successive
 * transactions never use the same one.
 */
const SERVER_CONNECTIONS = 3;

/** @throws TestbedError `ASSET_UNAVAILABLE`, see `pgBouncerFolder` */
export async function startPgBouncer({ postgres, poolMode }: PgBouncerOptions): Promise<PgBouncer> {
  const programs = await pgBouncerFolder();
  await using stack = new AsyncDisposableStack();
  const dir = await RunSupervisor.shared.folder('pgbouncer');
  stack.defer(() => rm(dir, { recursive: true, force: true, maxRetries: 5 }));
  const user = await serverUser(); // like PostgreSQL, PgBouncer refuses to run as root
  await giveTo(user, dir, 0o700);
  await cp(programs, join(dir, 'programs'), { recursive: true }); // copied, because this user may have no access to the cache
  const [host, port] = ['127.0.0.1', await freePort()];
  const userList = join(dir, 'users.txt');
  const config = join(dir, 'pgbouncer.ini');
  await writeFile(userList, `"${postgres.user}" "${postgres.password}"\n`);
  await writeFile(
    config,
    [
      '[databases]',
      `* = host=${postgres.host} port=${postgres.port}`,
      '[pgbouncer]',
      ...[`listen_addr = ${host}`, `listen_port = ${port}`, 'unix_socket_dir ='],
      ...['auth_type = plain', `auth_file = ${userList}`],
      ...[`pool_mode = ${poolMode}`, 'server_round_robin = 1'],
      ...[`min_pool_size = ${SERVER_CONNECTIONS}`, `default_pool_size = ${SERVER_CONNECTIONS}`],
      '',
    ].join('\n'),
  );
  for (const path of [join(dir, 'programs'), join(dir, 'programs', 'pgbouncer')])
    await giveTo(user, path, 0o755);
  for (const path of [userList, config]) await giveTo(user, path, 0o600);
  const part = stack.use(
    await Part.start({
      name: 'pgbouncer',
      command: join(dir, 'programs', 'pgbouncer'),
      args: [config],
      env: { LD_LIBRARY_PATH: join(dir, 'programs') },
      dir,
      ready: () => acceptsClients({ host, port, user: postgres.user, database: postgres.database }),
      ...(user && { user }),
    }),
  );
  const owned = stack.move();
  return { host, port, part, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
