import { describe, expect, test } from 'vitest';
import { writeBatch } from './batch.ts';
import { type BatchResult, DatabaseError, type StatusWrite } from './database.ts';

/** A table that rejects every batch that contains a bad row. */
function tableWith({ bad = [], locked = [], unchanged = [] }: Partial<Record<string, readonly string[]>>) {
  const written = new Map<string, string>();
  const statements: (readonly string[])[] = [];
  const write = async (writes: readonly StatusWrite[], shards: readonly number[]): Promise<BatchResult> => {
    statements.push(writes.map(({ id }) => id));
    expect(shards).toEqual([3]);
    const rejected = writes.find(({ id }) => bad.includes(id));
    if (rejected !== undefined)
      throw new DatabaseError(`check constraint rejects ${rejected.id}`, '23514', 'rows');
    const positions = (ids: readonly string[]) =>
      writes.flatMap(({ id }, at) => (ids.includes(id) ? [at] : []));
    const changed = writes.filter(({ id }) => !locked.includes(id) && !unchanged.includes(id));
    for (const { id, status } of changed) written.set(id, status);
    return { written: positions(changed.map(({ id }) => id)), skipped: positions(locked) };
  };
  return { write, written, statements };
}

const writesTo = (count: number): readonly StatusWrite[] =>
  Array.from({ length: count }, (_, at) => ({ id: `r${at}`, status: 'POWERED_ON' }));
const typesOf = (results: readonly { readonly type: string }[]) => results.map(({ type }) => type);

test('a batch without rejected rows is written in one statement', async () => {
  const table = tableWith({ locked: ['r1'], unchanged: ['r3'] });
  expect(typesOf(await writeBatch(table, writesTo(5), [3]))).toEqual([
    'written',
    'skipped',
    'written',
    'unchanged',
    'written',
  ]);
  expect(table.statements).toHaveLength(1);
});

test('an empty batch is not sent', async () => {
  const table = tableWith({});
  expect(await writeBatch(table, [], [3])).toEqual([]);
  expect(table.statements).toEqual([]);
});

describe('rejected rows', () => {
  test.each([
    [1, ['r0']],
    [2, ['r1']],
    [7, ['r0', 'r6']],
    [2_500, ['r1234']],
    [2_500, ['r0', 'r1', 'r1250', 'r2499']],
    [8, ['r0', 'r1', 'r2', 'r3', 'r4', 'r5', 'r6', 'r7']],
  ])('all rows of a batch of %i are written, except the rejected rows %j', async (count, bad) => {
    const table = tableWith({ bad });
    const results = await writeBatch(table, writesTo(count), [3]);
    expect(typesOf(results)).toEqual(
      writesTo(count).map(({ id }) => (bad.includes(id) ? 'rejected' : 'written')),
    );
    expect(table.written.size).toBe(count - bad.length);
    // For each rejected row, at most one batch per level of the bisection is split in two.
    expect(table.statements.length).toBeLessThanOrEqual(1 + 2 * bad.length * Math.ceil(Math.log2(count)));
    // No row is written twice.
    const accepted = table.statements.filter((ids) => !ids.some((id) => bad.includes(id))).flat();
    expect(new Set(accepted).size).toBe(accepted.length);
  });

  test('each rejected row of a batch has its own error', async () => {
    const results = await writeBatch(tableWith({ bad: ['r1', 'r2'] }), writesTo(4), [3]);
    expect(results.map((each) => (each.type === 'rejected' ? each.error.message : each.type))).toEqual([
      'written',
      'check constraint rejects r1',
      'check constraint rejects r2',
      'written',
    ]);
  });
});

describe('failures that concern no row', () => {
  test.each([
    new DatabaseError('connection terminated', '57P01', 'session'),
    new DatabaseError('another replica has taken over', 'FENCE_LOST', 'fence'),
    new TypeError('a bug'),
  ])('a failure that does not concern a row is thrown without another statement: $message', async (error) => {
    let statements = 0;
    const write = async () => {
      statements += 1;
      throw error;
    };
    await expect(writeBatch({ write }, writesTo(100), [3])).rejects.toBe(error);
    expect(statements).toBe(1);
  });

  test('a failure that does not concern a row is also thrown while the halves of a rejected batch are written', async () => {
    const { write, statements } = tableWith({ bad: ['r0'] });
    const breaking: typeof write = (writes, shards) => {
      if (statements.length === 2) throw new DatabaseError('connection terminated', '57P01', 'session');
      return write(writes, shards);
    };
    await expect(writeBatch({ write: breaking }, writesTo(8), [3])).rejects.toMatchObject({ code: '57P01' });
  });
});
