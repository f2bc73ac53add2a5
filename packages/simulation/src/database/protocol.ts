import type { StatusWrite } from '@vmwright/operator';
import type { TableRow } from './table.ts';

/* Messages between a session and the model of PostgreSQL. Each SQL statement of the status mirror is one request. */

/**
 * How the server checks that a session still owns its shards: with `session`, the session holds an advisory lock for
 * each shard; with `table`, the session knows the newest epoch of each shard. The check is the fence: a session that
 * has lost a shard can no longer write rows of this shard.
 */
export type FenceMode = 'session' | 'table';

/**
 * Shards that the session must still own. In mode `table`, it owns a shard if `epochs` has the shard's newest epoch.
 */
export interface Guard {
  readonly shards: readonly number[];
  readonly epochs: readonly number[];
}

/** Statements by name, with their parameters. */
export interface Statements {
  /** Tries to get the advisory locks of shards. */
  readonly lock: { readonly shards: readonly number[] };
  readonly unlock: { readonly shards: readonly number[] };
  /** Terminates the sessions that hold the advisory locks of shards. */
  readonly terminate: { readonly shards: readonly number[] };
  /** Increments the epochs of shards. */
  readonly bump: { readonly shards: readonly number[] };
  readonly page: { readonly after: string };
  readonly find: { readonly names: readonly string[] };
  readonly check: Guard;
  readonly write: Guard & { readonly writes: readonly StatusWrite[] };
}

/** Results of the statements. */
export interface Results {
  readonly lock: readonly number[];
  readonly unlock: null;
  readonly terminate: null;
  readonly bump: readonly number[];
  readonly page: { readonly rows: readonly TableRow[]; readonly isLast: boolean };
  readonly find: readonly TableRow[];
  readonly check: boolean;
  readonly write: {
    readonly held: boolean;
    readonly written: readonly number[];
    readonly skipped: readonly number[];
  };
}

export type StatementName = keyof Statements;

/** Response to a statement. */
export type Reply<R = unknown> =
  | { readonly result: R }
  | { readonly error: { readonly code: string; readonly message: string } };

/** Statements that only read. They are not tracked as writes in transit. */
export const READS: ReadonlySet<StatementName> = new Set<StatementName>(['page', 'find', 'check']);
