import { isRecord } from '../api/record.ts';
import { SERVER_STATES, type Server, type ServerState, type ServerStatus } from '../api/server.ts';

/*
 * Parsers of response bodies. They throw for a body of an unexpected shape. Such a body comes from another program or
 * from an unknown version of the cloud, and must not influence a status or a decision.
 */

export interface Page {
  readonly items: readonly Server[];
  /** Cursor of the next page; undefined on the last page. */
  readonly next: string | undefined;
}

export function parseServer(text: string): Server {
  return toServer(JSON.parse(text));
}

export function parseStatus(text: string): ServerStatus {
  return toStatus(toRecord(JSON.parse(text), 'a server status'));
}

export function parsePage(text: string): Page {
  const { items, next } = toRecord(JSON.parse(text), 'a page of servers');
  if (!Array.isArray(items)) throw invalidField('items', 'an array');
  if (next !== undefined && typeof next !== 'string') throw invalidField('next', 'a string');
  return { items: items.map(toServer), next };
}

/** @throws TypeError unless the body says that the name is available */
export function parseAvailability(text: string, name: string): void {
  const availability = toRecord(JSON.parse(text), 'the availability of a name');
  if (availability.name !== name || availability.available !== true)
    throw invalidField('available', `true for ${name}`);
}

function toServer(value: unknown): Server {
  const fields = toRecord(value, 'a server');
  const { id, name, labels, createdAt } = fields;
  if (typeof id !== 'string' || id === '') throw invalidField('id', 'a non-empty string');
  if (typeof name !== 'string' || name === '') throw invalidField('name', 'a non-empty string');
  if (typeof createdAt !== 'string' || Number.isNaN(Date.parse(createdAt)))
    throw invalidField('createdAt', 'a timestamp');
  if (!isRecord(labels) || !isStringRecord(labels)) throw invalidField('labels', 'an object of strings');
  return { id, name, labels, createdAt, ...toStatus(fields) };
}

function toStatus({ state, cpuUtilization, message }: Readonly<Record<string, unknown>>): ServerStatus {
  if (!isState(state)) throw invalidField('state', `one of ${SERVER_STATES.join(', ')}`);
  if (!isPercent(cpuUtilization)) throw invalidField('cpuUtilization', 'an integer from 0 to 100');
  if (message !== undefined && typeof message !== 'string') throw invalidField('message', 'a string');
  return { state, cpuUtilization, ...(message !== undefined && { message }) };
}

function toRecord(value: unknown, expected: string): Readonly<Record<string, unknown>> {
  if (isRecord(value)) return value;
  throw new TypeError(`the response is not ${expected}`);
}

function isStringRecord(value: Readonly<Record<string, unknown>>): value is Readonly<Record<string, string>> {
  return Object.values(value).every((each) => typeof each === 'string');
}

function isState(value: unknown): value is ServerState {
  return SERVER_STATES.some((state) => state === value);
}

function isPercent(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 100;
}

function invalidField(field: string, expected: string): TypeError {
  return new TypeError(`response field "${field}" is not ${expected}`);
}
