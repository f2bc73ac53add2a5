import type { SQLOutputValue } from 'node:sqlite';
import { isRecord } from '../../api/record.ts';
import { type Labels, SERVER_STATES, type ServerState } from '../../api/server.ts';

/** Row of the table `servers`. */
export interface StoredServer {
  /** Position in lists; increases with each create and is never reused. */
  readonly seq: number;
  readonly id: string;
  readonly name: string;
  readonly labels: Labels;
  readonly state: ServerState;
  readonly message: string | undefined;
  /** Idempotency key of the create request. */
  readonly key: string | undefined;
  readonly createdAt: number;
  readonly deletingSince: number | undefined;
}

export type Row = Readonly<Record<string, SQLOutputValue>>;

export function toServer(row: Row): StoredServer {
  return {
    seq: integer(row, 'seq'),
    id: text(row, 'id'),
    name: text(row, 'name'),
    labels: parseLabels(text(row, 'labels')),
    state: toState(text(row, 'state')),
    message: row.message === null ? undefined : text(row, 'message'),
    key: row.key === null ? undefined : text(row, 'key'),
    createdAt: integer(row, 'created_at'),
    deletingSince: row.deleting_since === null ? undefined : integer(row, 'deleting_since'),
  };
}

export function text(row: Row, column: string): string {
  const value = row[column];
  if (typeof value !== 'string') throw new TypeError(`column ${column} is not a string`);
  return value;
}

export function integer(row: Row, column: string): number {
  const value = row[column];
  if (typeof value !== 'number') throw new TypeError(`column ${column} is not a number`);
  return value;
}

export function toState(value: string): ServerState {
  const state = SERVER_STATES.find((each) => each === value);
  if (state === undefined) throw new TypeError(`unknown server state ${value}`);
  return state;
}

function parseLabels(json: string): Labels {
  const value: unknown = JSON.parse(json);
  if (!isRecord(value)) throw new TypeError('stored labels are not an object');
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, String(each)]));
}
