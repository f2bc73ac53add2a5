import { randomBytes } from 'node:crypto';
import { chmod, chown, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { TestbedError } from '../errors.ts';
import { Keeper } from '../process/keeper.ts';
import { Part } from '../process/part.ts';
import { portFor } from '../process/ports.ts';
import { type Binaries, installedNative, usableBinaries } from './binaries.ts';
import { type Address, letsClientsIn } from './handshake.ts';
import { keptCommand } from './kept-command.ts';
import { type ServerUser, serverUser } from './server-user.ts';

export interface PostgresOptions {
  /** @default one that is free */
  readonly port?: number;
  /** A folder with PostgreSQL's `bin`, `lib` and `share`. @default the one npm installed */
  readonly native?: string;
}

interface Credentials extends Address {
  readonly password: string;
}

/**
 * A PostgreSQL server with an empty database, of which `user` is the superuser.
 *
 * Caveats: `part.pause()` stops it from taking connections, but those that are open have processes of their own and go
 * on being served; to silence them put a toxiproxy in between. `part.kill()` ends all of them, without a checkpoint,
 * and what was committed is there after `part.start()`; with `fsync` off it would not survive the machine's own end.
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

export async function startPostgres({ port, native }: PostgresOptions = {}): Promise<Postgres> {
  const credentials: Credentials = {
    host: '127.0.0.1',
    port: await portFor('PostgreSQL', port),
    user: 'vmwright',
    password: randomBytes(16).toString('hex'),
    database: 'postgres',
  };
  await using resources = new AsyncDisposableStack();
  const dir = await Keeper.shared.folder('postgres');
  resources.defer(() => rm(dir, { recursive: true, force: true, maxRetries: 5 }));
  const user = await serverUser();
  await giveTo(user, dir, 0o700);
  const binaries = await usableBinaries({ native: native ?? installedNative(), user, dir });
  const data = join(dir, 'data');
  await initialise(binaries, { credentials, data, dir, user });
  const part = resources.use(
    await Part.start({
      name: 'postgres',
      command: binaries.postgres,
      args: ['-D', data, ...settings(credentials)],
      dir,
      stopSignal: 'SIGINT', // "fast": does not wait for clients to leave
      killSignal: 'SIGQUIT', // "immediate": as good as SIGKILL, which would leave shared memory and servers behind
      ready: () => letsClientsIn(credentials),
      ...(user && { user }),
    }),
  );
  return new Postgres(credentials, part, resources.move());
}

function settings({ host, port }: Credentials): string[] {
  const values = {
    listen_addresses: host,
    port,
    unix_socket_directories: '', // a socket's path may have 107 bytes, and a folder for temporary files may have more
    fsync: 'off',
    dynamic_shared_memory_type: 'mmap', // in its folder, and gone with it whatever happens; not in /dev/shm
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
  const { ok, said } = await keptCommand(
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
      `PostgreSQL's initdb could not make a database in ${data}: ${said}`,
    );
  }
}

/** Makes a file or folder the server's user's own, with nobody else let in. */
async function giveTo(user: ServerUser | undefined, path: string, mode: number): Promise<void> {
  await chmod(path, mode);
  if (user !== undefined) await chown(path, user.uid, user.gid);
}
