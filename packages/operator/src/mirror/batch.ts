import { type DatabaseError, isRowError, type Session, type StatusWrite } from './database.ts';

/** Result of one write of a batch. */
export type WriteResult =
  | { readonly type: 'written' | 'unchanged' | 'skipped' }
  | { readonly type: 'rejected'; readonly error: DatabaseError };

/**
 * Writes a batch. If the database rejects it because of a row, writes each half separately, and so on. In the end, all
 * rows are written except the rejected ones.
 * @returns the results in the order of the writes
 * @throws DatabaseError with the scope `session` or `fence`; some of the rows may have been written
 */
export async function writeBatch(
  session: Pick<Session, 'write'>,
  writes: readonly StatusWrite[],
  shards: readonly number[],
): Promise<readonly WriteResult[]> {
  if (writes.length === 0) return [];
  try {
    const { written, skipped } = await session.write(writes, shards);
    const results: WriteResult[] = writes.map(() => ({ type: 'unchanged' }));
    for (const at of written) results[at] = { type: 'written' };
    for (const at of skipped) results[at] = { type: 'skipped' };
    return results;
  } catch (error) {
    if (!isRowError(error)) throw error;
    if (writes.length === 1) return [{ type: 'rejected', error }];
    const middle = writes.length >> 1;
    return [
      ...(await writeBatch(session, writes.slice(0, middle), shards)),
      ...(await writeBatch(session, writes.slice(middle), shards)),
    ];
  }
}
