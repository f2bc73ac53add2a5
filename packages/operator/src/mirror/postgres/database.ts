import { readFile } from 'node:fs/promises';
import { type Clock, unlessAborted } from '@vmwright/runtime';
import pg, { type ClientConfig } from 'pg';
import { type Database, DatabaseError, type Session } from '../database.ts';
import { NO_TLS, toDatabaseError } from './errors.ts';
import { EpochFence, SessionLockFence } from './fences.ts';
import { PostgresSession } from './session.ts';

/** TLS modes of libpq, from no encryption to a verified host name. */
export const SSL_MODES = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;
export type SslMode = (typeof SSL_MODES)[number];

/** Type of the fence that keeps a deposed leader from writing: see `SessionLockFence` and `EpochFence`. */
export type FenceMode = 'session' | 'table';

export interface DatabaseSettings {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
  /** Reads the password. Called for each connection, so that a rotated password is used. */
  readonly password: () => Promise<string | undefined>;
  readonly sslMode: SslMode;
  /** File with the CA certificates to trust. @default the system's CAs */
  readonly caFile: string | undefined;
  readonly fence: FenceMode;
}

export interface PostgresDatabaseOptions extends DatabaseSettings {
  readonly clock: Pick<Clock, 'monotonic' | 'after'>;
  /** Name of this replica, shown in pg_stat_activity and the fence table. */
  readonly identity: string;
}

const CONNECT_TIMEOUT_MS = 10_000;
const STATEMENT_TIMEOUT_MS = 30_000;
/**
 * Timeout of the client for a statement. It is longer than the timeout of the server, so that a server that responds
 * reports the timeout first.
 */
const QUERY_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 5_000;

/** PostgreSQL database with the schema of SSVirt. */
export class PostgresDatabase implements Database {
  readonly #options: PostgresDatabaseOptions;

  constructor(options: PostgresDatabaseOptions) {
    this.#options = options;
  }

  async open(signal: AbortSignal): Promise<Session> {
    const { clock, identity, fence } = this.#options;
    const client = await this.#connect(signal);
    const session = new PostgresSession(
      client,
      fence === 'session' ? new SessionLockFence(clock) : new EpochFence(identity),
      clock,
    );
    try {
      // The timeout is not set with the fence `table`, which is meant for poolers in transaction mode. Such a pooler
      // would apply the setting to the statements of other clients.
      if (fence === 'session') await client.query(`SET statement_timeout = ${STATEMENT_TIMEOUT_MS}`);
      const { rows } = await client.query<{ readonly standby: boolean }>(
        'SELECT pg_is_in_recovery() AS standby',
      );
      if (rows[0]?.standby === true)
        throw new DatabaseError(
          'the server is a standby; check that the address leads to the primary server',
          '25006',
          'session',
        );
      return session;
    } catch (error) {
      await session[Symbol.asyncDispose]();
      throw toDatabaseError(error);
    }
  }

  /**
   * Connects with or without TLS. If the TLS mode permits both, tries the second variant after the server rejects the
   * first.
   */
  async #connect(signal: AbortSignal): Promise<pg.Client> {
    const { sslMode } = this.#options;
    const variants =
      sslMode === 'prefer' ? [true, false] : sslMode === 'allow' ? [false, true] : [sslMode !== 'disable'];
    let failure: unknown;
    for (const isEncrypted of variants) {
      try {
        return await this.#connectOnce(isEncrypted, signal);
      } catch (error) {
        failure = error;
        if (!mayDependOnTls(error)) break;
      }
    }
    throw toDatabaseError(failure);
  }

  async #connectOnce(isEncrypted: boolean, signal: AbortSignal): Promise<pg.Client> {
    const { host, port, user, database, password, identity } = this.#options;
    const secret = await password();
    const client = new pg.Client({
      host,
      port,
      user,
      database,
      ...(secret !== undefined && { password: secret }),
      ssl: isEncrypted ? await this.#tls() : false,
      application_name: `ssvirt-vm-controller ${identity}`.slice(0, 63),
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: QUERY_TIMEOUT_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
    });
    const connecting = client.connect();
    try {
      await unlessAborted(connecting, signal);
      return client;
    } catch (error) {
      client.on('error', () => undefined); // an error of the abandoned connection must not end the process
      void connecting.catch(() => undefined).then(() => client.end().catch(() => undefined));
      throw error;
    }
  }

  async #tls(): Promise<ClientConfig['ssl']> {
    const { sslMode, caFile } = this.#options;
    const ca = caFile === undefined ? {} : { ca: await readFile(caFile, 'utf8') };
    switch (sslMode) {
      case 'verify-full':
        return { ...ca, rejectUnauthorized: true };
      case 'verify-ca':
        return { ...ca, rejectUnauthorized: true, checkServerIdentity: () => undefined };
      case 'require':
        // As in libpq, the certificate is verified only if a CA is configured. The host name is never verified.
        return caFile === undefined
          ? { rejectUnauthorized: false }
          : { ...ca, rejectUnauthorized: true, checkServerIdentity: () => undefined };
      default:
        return { rejectUnauthorized: false };
    }
  }
}

/**
 * Whether the connection might succeed with TLS instead of without, or the other way round. The server may not offer
 * TLS, or pg_hba.conf may require or forbid it.
 */
function mayDependOnTls(error: unknown): boolean {
  const { code } = toDatabaseError(error);
  return code === '28000' || code === NO_TLS;
}
