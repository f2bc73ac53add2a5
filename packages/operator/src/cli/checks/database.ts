import { messageOf, nodeWorld } from '@vmwright/runtime';
import { PostgresDatabase } from '../../mirror/postgres/database.ts';
import { mirrorSettings } from '../../mirror/settings.ts';
import type { Environment } from '../../settings/values.ts';
import { type CheckResult, failed, passed } from './result.ts';

/** Opens a session with the database of the mirror and reads the first rows of the mirrored table. */
export async function checkMirrorDatabase(
  config: string | undefined,
  environment: Environment,
  signal: AbortSignal,
): Promise<CheckResult> {
  const name = 'database';
  try {
    const { database } = mirrorSettings(config, environment, 'verify');
    const { host, port } = database;
    const postgres = new PostgresDatabase({ ...database, clock: nodeWorld, identity: 'check' });
    await using session = await postgres.open(signal);
    for await (const _ of session.rows()) break;
    return passed(name, `${database.database} on ${host}:${port} has the schema of SSVirt`);
  } catch (error) {
    signal.throwIfAborted();
    return failed(name, messageOf(error), 'check DATABASE_URL or the section "database:" of the config file');
  }
}
