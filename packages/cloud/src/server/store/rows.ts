import type { SQLOutputValue } from 'node:sqlite';
import { isRecord } from '../../api/record.ts';
import { type Labels, SERVER_STATES, type ServerState } from '../../api/server.ts';

/** A server as it is stored. */
export interface StoredServer {
  /** Its place in lists. */
  readonly seq: number;
  readonly id: string;
  readonly name: string;
  readonly labels: Labels;
  readonly state: ServerState;
  readonly message: string | undefined;
  /** With which it was created. */
  readonly key: string | undefined;
  readonly createdAt: number;
  readonly deletingSince: number | undefined;
}

export type Row = Readonly<Record<string, SQLOutputValue>>;

export function serverIn(row: Row): StoredServer {
  return {
    seq: integer(row, 'seq'),
    id: text(row, 'id'),
    name: text(row, 'name'),
    labels: labelsIn(text(row, 'labels')),
    state: stateIn(text(row, 'state')),
    message: row.message === null ? undefined : text(row, 'message'),
    key: row.key === null ? undefined : text(row, 'key'),
    createdAt: integer(row, 'created_at'),
    deletingSince: row.deleting_since === null ? undefined : integer(row, 'deleting_since'),
  };
}

export function text(row: Row, column: string): string {
  const value = row[column];
  if (typeof value !== 'string') throw new TypeError(`the column ${column} is no text`);
  return value;
}

export function integer(row: Row, column: string): number {
  const value = row[column];
  if (typeof value !== 'number') throw new TypeError(`the column ${column} is no number`);
  return value;
}

export function stateIn(value: string): ServerState {
  const state = SERVER_STATES.find((each) => each === value);
  if (state === undefined) throw new TypeError(`there is no state ${value}`);
  return state;
}

function labelsIn(json: string): Labels {
  const value: unknown = JSON.parse(json);
  if (!isRecord(value)) throw new TypeError('stored labels are no object');
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, String(each)]));
}
