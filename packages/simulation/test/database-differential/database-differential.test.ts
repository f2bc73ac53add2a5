import { isDeepStrictEqual } from 'node:util';
import { Choices } from '@vmwright/simulation';
import { budget, type Postgres, Ssvirt, startPostgres } from '@vmwright/testbed';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { FenceMode } from '../../src/database/protocol.ts';
import { compareAll } from '../compare-all.ts';
import { directDatabase } from './model.ts';
import { type Operation, sequence } from './operations.ts';
import { install, realClients, realDatabase } from './postgres.ts';
import { type Result, Side } from './side.ts';

/** The first difference between the model and PostgreSQL. */
interface Difference {
  readonly seed: number;
  readonly at: string;
  readonly operations: readonly Operation[];
  readonly real: unknown;
  readonly model: unknown;
}

/** Outcomes that must occur: the success of every call, and each of its possible errors. */
const EXPECTED = [
  'acquire succeeds',
  'acquire fails: session',
  'release succeeds',
  'rows succeeds',
  'find succeeds',
  'check succeeds',
  'check fails: session',
  'write succeeds',
  'write fails: rows',
  'write fails: fence',
  'write fails: session',
  'lock succeeds',
];

describe('the model answers random calls of sessions like PostgreSQL and ends with the same table', () => {
  let postgres: Postgres;
  let ssvirt: Ssvirt;
  beforeAll(async () => {
    postgres = await startPostgres();
    ssvirt = await install(postgres);
  });
  afterAll(async () => {
    await ssvirt?.[Symbol.asyncDispose]();
    await postgres?.[Symbol.asyncDispose]();
  });

  test.for<FenceMode>(['session', 'table'])('with the leader fence "%s"', { timeout: 600_000 }, (mode) =>
    compareAll({
      sequences: budget(60, 1_000),
      concurrency: 1,
      expected: EXPECTED,
      least: 3,
      compare: (seed, onOutcome) => compare(seed, mode, onOutcome),
    }),
  );

  async function compare(
    seed: number,
    mode: FenceMode,
    onOutcome: (outcome: string) => void,
  ): Promise<Difference | undefined> {
    await ssvirt.query('TRUNCATE vms');
    await using locker = await Ssvirt.connect(postgres);
    await using real = new Side(realDatabase(postgres, mode), realClients(ssvirt, locker));
    const direct = directDatabase(mode);
    await using model = new Side(direct.database, direct.others);
    const operations = sequence(Choices.seeded(seed));
    for (const [index, operation] of operations.entries()) {
      const results = [await real.perform(operation), await model.perform(operation)] as const;
      onOutcome(`${operation.do} ${outcomeOf(results[0])}`);
      if (isDeepStrictEqual(...results)) continue;
      const at = `operation ${index}`;
      return { seed, at, operations: operations.slice(0, index + 1), real: results[0], model: results[1] };
    }
    const tables = [await real.table(), await model.table()] as const;
    if (isDeepStrictEqual(...tables)) return undefined;
    return { seed, at: 'the end', operations, real: tables[0], model: tables[1] };
  }
});

function outcomeOf(result: Result): string {
  if (result === 'skipped') return result;
  return 'ok' in result ? 'succeeds' : `fails: ${result.error}`;
}
