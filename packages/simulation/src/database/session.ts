import {
  type BatchResult,
  type Database,
  DatabaseError,
  type Row,
  type Session,
  type StatusWrite,
} from '@vmwright/operator';
import { type Timer, type Transport, type World, wait } from '@vmwright/runtime';
import {
  type FenceMode,
  type Guard,
  READS,
  type Reply,
  type Results,
  type StatementName,
  type Statements,
} from './protocol.ts';
import type { TableRow } from './table.ts';

/** Address of the model on the simulated network. */
export const DATABASE = 'https://database.simulated';

export interface SimulatedDatabaseOptions {
  readonly world: World;
  /** Name and incarnation of the replica that opens the sessions. */
  readonly identity: string;
  readonly mode: FenceMode;
  /** Called when the fence is acquired, before the caller of `acquire` continues. */
  readonly onAcquired?: (session: Session) => void;
  /** Called when a read of the whole table begins. */
  readonly onRead?: (session: Session) => void;
}

const CONNECT_TIMEOUT_MS = 10_000;
/**
 * Timeout of a statement. It is longer than a slow statement takes (12 s), but shorter than the longest wait of a batch
 * in the queue (45 s), so that some batches time out. In production, the timeout is 35 s. The lower value keeps runs
 * short.
 */
const QUERY_TIMEOUT_MS = 20_000;
/**
 * A session that takes over shards waits this long for other sessions to release their locks. Then it terminates those
 * sessions.
 */
const RELEASE_MS = 2_000;
const RETRY_MS = 200;

/** Client of the database over the simulated network. Its sessions behave like the operator's `PostgresSession`. */
export class SimulatedDatabase implements Database {
  readonly #options: SimulatedDatabaseOptions;

  constructor(options: SimulatedDatabaseOptions) {
    this.#options = options;
  }

  async open(signal: AbortSignal): Promise<SimulatedSession> {
    const { world, identity, mode } = this.#options;
    const transport = world.connect({ origin: DATABASE });
    const connection = new AbortController();
    const abort = () => connection.abort(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    const timer = world.after(CONNECT_TIMEOUT_MS, () => connection.abort(new Error('timeout expired')));
    try {
      const response = await transport.request({
        method: 'GET',
        path: '/open',
        headers: {},
        body: JSON.stringify({ identity, mode }),
        signal: connection.signal,
        lasting: true,
      });
      const lines = response.lines()[Symbol.asyncIterator]();
      const { value } = await lines.next();
      const id = resultOf<number>(typeof value === 'string' ? value : '');
      return new SimulatedSession({ ...this.#options, id, transport, connection, lines });
    } catch (error) {
      connection.abort();
      throw toDatabaseError(error);
    } finally {
      timer.cancel();
      signal.removeEventListener('abort', abort);
    }
  }
}

interface SessionOptions extends SimulatedDatabaseOptions {
  readonly id: number;
  readonly transport: Transport;
  /** Aborts when the connection is closed. */
  readonly connection: AbortController;
  /**
   * Lines that follow the session id on the connection. The server sends none, so `next` resolves only when the server
   * closes the connection.
   */
  readonly lines: AsyncIterator<string>;
}

class SimulatedSession implements Session {
  readonly #options: SessionOptions;
  readonly #held = new Map<number, number>();
  #failure: DatabaseError | undefined;
  /** Settles when the previous statement has ended. The client sends the next statement only then. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: SessionOptions) {
    this.#options = options;
    options.lines.next().then(
      () => this.#fail(new DatabaseError('the connection was closed', 'CLOSED', 'session')),
      (error: unknown) => this.#fail(toDatabaseError(error)),
    );
  }

  async acquire(shards: readonly number[], takeOver: boolean, signal: AbortSignal): Promise<void> {
    if (this.#options.mode === 'table') {
      const epochs = await this.#query('bump', { shards });
      for (const [at, shard] of shards.entries()) this.#held.set(shard, epochs[at] ?? 0);
    } else await this.#lock(shards, takeOver, signal);
    this.#options.onAcquired?.(this);
  }

  async #lock(shards: readonly number[], takeOver: boolean, signal: AbortSignal): Promise<void> {
    const { world } = this.#options;
    const since = world.monotonic();
    for (;;) {
      const missing = shards.filter((shard) => !this.#held.has(shard));
      for (const shard of await this.#query('lock', { shards: missing })) this.#held.set(shard, 0);
      const left = shards.filter((shard) => !this.#held.has(shard));
      if (left.length === 0) return;
      if (takeOver && world.monotonic() - since >= RELEASE_MS)
        await this.#query('terminate', { shards: left });
      await wait(world, RETRY_MS, signal);
    }
  }

  async release(shards: readonly number[]): Promise<void> {
    for (const shard of shards) this.#held.delete(shard);
    if (this.#options.mode === 'session') await this.#query('unlock', { shards });
  }

  async *rows(): AsyncGenerator<readonly Row[], void, undefined> {
    this.#options.onRead?.(this);
    for (let after = ''; ; ) {
      const { rows, isLast } = await this.#query('page', { after });
      yield rows.map(toRow);
      const last = rows.at(-1);
      if (isLast || last === undefined) return;
      after = last.id;
    }
  }

  async find(names: readonly string[]): Promise<readonly Row[]> {
    return (await this.#query('find', { names })).map(toRow);
  }

  async check(): Promise<void> {
    if (!(await this.#query('check', this.#guard([...this.#held.keys()])))) throw fenceLost();
  }

  async write(writes: readonly StatusWrite[], shards: readonly number[]): Promise<BatchResult> {
    const { held, written, skipped } = await this.#query('write', { writes, ...this.#guard(shards) });
    if (!held) throw fenceLost();
    return { written, skipped };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#fail(new DatabaseError('the session was closed', 'CLOSED', 'session'));
  }

  #guard(shards: readonly number[]): Guard {
    return { shards, epochs: shards.map((shard) => this.#held.get(shard) ?? 0) };
  }

  #fail(error: DatabaseError): void {
    this.#failure ??= error;
    this.#options.connection.abort(this.#failure);
  }

  #query<N extends StatementName>(name: N, parameters: Statements[N]): Promise<Results[N]> {
    const result = this.#last.then(() => this.#send(name, parameters));
    this.#last = result.catch(() => undefined);
    return result;
  }

  async #send<N extends StatementName>(name: N, parameters: Statements[N]): Promise<Results[N]> {
    if (this.#failure !== undefined) throw this.#failure;
    const { world, transport, connection, id } = this.#options;
    const timer: Timer = world.after(QUERY_TIMEOUT_MS, () =>
      this.#fail(new DatabaseError('Query read timeout', 'UNKNOWN', 'session')),
    );
    try {
      const response = await transport.request({
        method: READS.has(name) ? 'GET' : 'POST',
        path: `/session/${id}/${name}`,
        headers: {},
        body: JSON.stringify(parameters),
        signal: connection.signal,
      });
      return resultOf<Results[N]>(await response.text());
    } catch (error) {
      const found = toDatabaseError(error);
      if (found.scope === 'session') this.#fail(found);
      throw this.#failure ?? found;
    } finally {
      timer.cancel();
    }
  }
}

/**
 * Extracts the result from a reply.
 * @throws DatabaseError if the reply is an error, or the connection ended before it
 */
function resultOf<R>(text: string): R {
  if (text === '') throw new DatabaseError('Connection terminated unexpectedly', 'ECONNRESET', 'session');
  const reply: Reply<R> = JSON.parse(text);
  if ('result' in reply) return reply.result;
  const { code, message } = reply.error;
  throw new DatabaseError(message, code, code.startsWith('23') ? 'rows' : 'session');
}

function toDatabaseError(error: unknown): DatabaseError {
  if (error instanceof DatabaseError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new DatabaseError(message, 'ECONNRESET', 'session', { cause: error });
}

function fenceLost(): DatabaseError {
  return new DatabaseError('another replica has taken over', 'FENCE_LOST', 'fence');
}

const VAPP_URN = 'urn:vcloud:vapp:';

function toRow({ id, vmName, namespace, vappId, status, createdAt }: TableRow): Row {
  return {
    id,
    vmName: vmName ?? '',
    namespace: namespace ?? '',
    vapp: vappId.replace(VAPP_URN, '').toLowerCase(),
    status: status ?? '',
    createdAt: createdAt ?? 0,
  };
}
