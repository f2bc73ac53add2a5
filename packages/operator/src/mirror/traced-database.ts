import type { Tracer, World } from '@vmwright/runtime';
import { type Database, DatabaseError, type Session } from './database.ts';

/**
 * Returns a database with sessions that record each call, except `rows` and the disposal, as a child span of the batch
 * that makes the call.
 */
export function tracedDatabase(
  database: Database,
  tracer: Tracer,
  world: Pick<World, 'monotonic'>,
): Database {
  return { open: async (signal) => tracedSession(await database.open(signal), tracer, world) };
}

function tracedSession(session: Session, tracer: Tracer, world: Pick<World, 'monotonic'>): Session {
  const traced = async <T>(operation: string, rows: number, call: () => Promise<T>): Promise<T> => {
    const startedAt = world.monotonic();
    const record = (error?: unknown) =>
      tracer.call({
        name: `postgresql ${operation}`,
        durationMs: world.monotonic() - startedAt,
        isError: error !== undefined,
        attributes: {
          'db.system.name': 'postgresql',
          'db.operation.name': operation,
          'db.operation.batch.size': rows,
          ...(error instanceof DatabaseError && { 'db.response.status_code': error.code }),
        },
      });
    try {
      const result = await call();
      record();
      return result;
    } catch (error) {
      record(error);
      throw error;
    }
  };
  return {
    acquire: (shards, takeOver, signal) =>
      traced('acquire', shards.length, () => session.acquire(shards, takeOver, signal)),
    release: (shards) => traced('release', shards.length, () => session.release(shards)),
    rows: () => session.rows(),
    find: (names) => traced('find', names.length, () => session.find(names)),
    check: () => traced('check', 0, () => session.check()),
    write: (writes, shards) => traced('write', writes.length, () => session.write(writes, shards)),
    [Symbol.asyncDispose]: () => session[Symbol.asyncDispose](),
  };
}
