/** A row of the table `vms`, with the columns that matter to the mirror. Times are milliseconds since 1970. */
export interface TableRow {
  readonly id: string;
  readonly name: string;
  /** URN of the vApp. */
  readonly vappId: string;
  readonly vmName: string | null;
  readonly namespace: string | null;
  readonly status: string | null;
  readonly createdAt: number | null;
  readonly updatedAt: number | null;
  /** Set if the row is soft-deleted. */
  readonly deletedAt: number | null;
}

/** Origin of a change: a batch of the mirror, the SSVirt API server, or a fail-over that lost commits. */
export type ChangeCause = { readonly type: 'batch'; readonly session: number } | 'ssvirt' | 'fail-over';

/**
 * A committed change of a row. `before` is undefined for an insertion. `after` is undefined if a fail-over lost the
 * insertion.
 */
export interface RowChange {
  readonly before: TableRow | undefined;
  readonly after: TableRow | undefined;
  readonly cause: ChangeCause;
}

interface Commit {
  readonly atMs: number;
  readonly undo: () => void;
}

/** The committed state of the database, with the commits that a standby may not have received yet. */
export class Table {
  readonly #rows = new Map<string, TableRow>();
  readonly #listeners: ((change: RowChange) => void)[] = [];
  #commits: Commit[] = [];

  /** Calls the listener synchronously on each change. */
  listen(listener: (change: RowChange) => void): void {
    this.#listeners.push(listener);
  }

  get(id: string): TableRow | undefined {
    return this.#rows.get(id);
  }

  /** Returns all rows in the order of their ids, including soft-deleted rows. */
  all(): readonly TableRow[] {
    return [...this.#rows.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  /** Inserts or replaces rows in one transaction. */
  commit(rows: readonly TableRow[], cause: ChangeCause, atMs: number): void {
    const before = rows.map(({ id }) => this.#rows.get(id));
    for (const [at, row] of rows.entries()) this.#set(row.id, before[at], row, cause);
    this.record(atMs, () => {
      for (const [at, row] of rows.entries())
        this.#set(row.id, this.#rows.get(row.id), before[at], 'fail-over');
    });
  }

  /** Records how to undo a commit, for a fail-over that loses it. */
  record(atMs: number, undo: () => void): void {
    this.#commits.push({ atMs, undo });
  }

  /**
   * Undoes all commits that are newer than `atMs`, like a fail-over to a standby that lacks these commits.
   * @returns the number of lost commits
   */
  undoSince(atMs: number): number {
    const lost = this.#commits.filter((commit) => commit.atMs > atMs);
    this.#commits = [];
    for (const { undo } of lost.reverse()) undo();
    this.#commits = [];
    return lost.length;
  }

  #set(id: string, before: TableRow | undefined, after: TableRow | undefined, cause: ChangeCause): void {
    if (after === undefined) this.#rows.delete(id);
    else this.#rows.set(id, after);
    for (const listener of this.#listeners) listener({ before, after, cause });
  }
}
