import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { canary } from '../canaries/canary.ts';
import { TestbedError } from '../errors.ts';
import { Part } from '../process/part.ts';
import { portFor } from '../process/ports.ts';
import { RunSupervisor } from '../process/run-supervisor.ts';
import { type Binaries, installedNative, usableBinaries } from './binaries.ts';
import { giveTo } from './give-to.ts';
import { type Address, acceptsClients } from './handshake.ts';
import { type ServerUser, serverUser } from './server-user.ts';
import { supervisedCommand } from './supervised-command.ts';

export interface PostgresOptions {
  /** @default a free port */
  readonly port?: number;
  /** Password of the superuser. @default a unique fake password; tests search all output for it, to find leaks */
  readonly password?: string;
  /** Folder with PostgreSQL's `bin`, `lib` and `share`. @default the one that npm installed */
  readonly native?: string;
  /** Certificate and private key in PEM; the server then offers TLS. @default no TLS */
  readonly tls?: Tls;
  /** Server parameters, such as `{ fsync: 'on' }`. They override the testbed's own. */
  readonly settings?: Readonly<Record<string, string | number>>;
}

interface Tls {
  readonly certificate: string;
  readonly key: string;
}

interface Credentials extends Address {
  readonly password: string;
}

/**
 * A PostgreSQL server with an empty database; `user` is the superuser.
 *
 * Caveats: `part.pause()` blocks only new connections, because each open connection has its own server process. To
 * block open connections, use a toxiproxy. `part.kill()` kills all server processes without a checkpoint. Committed
 * data is available again after `part.start()`. It would not survive a crash of the machine, because `fsync` is off.
 */
export class Postgres implements AsyncDisposable {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  readonly part: Part;
  readonly #resources: AsyncDisposableStack;

  constructor(credentials: Credentials, part: Part, resources: AsyncDisposableStack) {
    this.host = credentials.host;
    this.port = credentials.port;
    this.user = credentials.user;
    this.password = credentials.password;
    this.database = credentials.database;
    this.part = part;
    this.#resources = resources;
  }

  get url(): string {
    return `postgres://${this.user}:${this.password}@${this.host}:${this.port}/${this.database}`;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#resources.disposeAsync();
  }
}

export async function startPostgres(options: PostgresOptions = {}): Promise<Postgres> {
  const { port, password = canary('database-password'), native, tls } = options;
  const credentials: Credentials = {
    host: '127.0.0.1',
    port: await portFor('PostgreSQL', port),
    user: 'vmwright',
    password,
    database: 'postgres',
  };
  await using resources = new AsyncDisposableStack();
  const dir = await RunSupervisor.shared.folder('postgres');
  resources.defer(() => rm(dir, { recursive: true, force: true, maxRetries: 5 }));
  const user = await serverUser();
  await giveTo(user, dir, 0o700);
  const binaries = await usableBinaries({ native: native ?? installedNative(), user, dir });
  const data = join(dir, 'data');
  await initialise(binaries, { credentials, data, dir, user });
  if (tls !== undefined) await writeTls(data, tls, user);
  const part = resources.use(
    await Part.start({
      name: 'postgres',
      command: binaries.postgres,
      args: ['-D', data, ...parameters(credentials, options)],
      dir,
      stopSignal: 'SIGINT', // "fast" shutdown: does not wait for clients to disconnect
      killSignal: 'SIGQUIT', // "immediate" shutdown: like SIGKILL, but releases shared memory and ends the server processes
      ready: () => acceptsClients(credentials),
      ...(user && { user }),
    }),
  );
  return new Postgres(credentials, part, resources.move());
}

function parameters({ host, port }: Credentials, { tls, settings }: PostgresOptions): string[] {
  const values = {
    listen_addresses: host,
    port,
    unix_socket_directories: '', // no Unix socket: its path is limited to 107 bytes, which TMPDIR may exceed
    fsync: 'off',
    dynamic_shared_memory_type: 'mmap', // keeps shared memory in the data folder, which is always removed
    ...(tls && { ssl: 'on' }), // uses server.crt and server.key in the data folder
    ...settings,
  };
  return Object.entries(values).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

interface Cluster {
  readonly credentials: Credentials;
  readonly data: string;
  readonly dir: string;
  readonly user: ServerUser | undefined;
}

async function initialise(binaries: Binaries, { credentials, data, dir, user }: Cluster): Promise<void> {
  const passwordFile = join(dir, 'password');
  await writeFile(passwordFile, credentials.password);
  await giveTo(user, passwordFile, 0o600);
  const { ok, output } = await supervisedCommand(
    binaries.initdb,
    [
      `--pgdata=${data}`,
      `--username=${credentials.user}`,
      `--pwfile=${passwordFile}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      '--locale=C',
      '--no-sync',
      '--no-instructions',
    ],
    { dir, user },
  );
  await rm(passwordFile);
  if (!ok) {
    throw new TestbedError(
      'COMMAND_FAILED',
      `initdb could not create a PostgreSQL database in ${data}: ${output}`,
    );
  }
}

async function writeTls(
  data: string,
  { certificate, key }: Tls,
  user: ServerUser | undefined,
): Promise<void> {
  for (const [name, pem] of Object.entries({ 'server.crt': certificate, 'server.key': key })) {
    const path = join(data, name);
    await writeFile(path, pem);
    await giveTo(user, path, 0o600);
  }
}
