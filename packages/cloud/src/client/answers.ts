import { isRecord } from '../api/record.ts';
import { SERVER_STATES, type Server, type ServerState, type ServerStatus } from '../api/server.ts';

/*
 * Where JSON becomes servers. What does not have their shape came from somebody else, or from a cloud that we do not
 * know, and must not reach a status or a decision.
 */

export interface Page {
  readonly items: readonly Server[];
  /** For the next page, unless this is the last. */
  readonly next: string | undefined;
}

export function serverIn(text: string): Server {
  return serverOf(JSON.parse(text));
}

export function statusIn(text: string): ServerStatus {
  return statusOf(fieldsOf(JSON.parse(text), 'a status'));
}

export function pageIn(text: string): Page {
  const { items, next } = fieldsOf(JSON.parse(text), 'a page of servers');
  if (!Array.isArray(items)) throw wrong('items', 'a list');
  if (next !== undefined && typeof next !== 'string') throw wrong('next', 'a text');
  return { items: items.map(serverOf), next };
}

export function availabilityIn(text: string, name: string): void {
  const answer = fieldsOf(JSON.parse(text), 'the availability of a name');
  if (answer.name !== name || answer.available !== true) throw wrong('available', `true for ${name}`);
}

function serverOf(value: unknown): Server {
  const fields = fieldsOf(value, 'a server');
  const { id, name, labels, createdAt } = fields;
  if (typeof id !== 'string' || id === '') throw wrong('id', 'a text');
  if (typeof name !== 'string' || name === '') throw wrong('name', 'a text');
  if (typeof createdAt !== 'string' || Number.isNaN(Date.parse(createdAt)))
    throw wrong('createdAt', 'a time');
  if (!isRecord(labels) || !isTexts(labels)) throw wrong('labels', 'texts by name');
  return { id, name, labels, createdAt, ...statusOf(fields) };
}

function statusOf({ state, cpuUtilization, message }: Readonly<Record<string, unknown>>): ServerStatus {
  if (!isState(state)) throw wrong('state', `one of ${SERVER_STATES.join(', ')}`);
  if (!isPercent(cpuUtilization)) throw wrong('cpuUtilization', 'a whole number from 0 to 100');
  if (message !== undefined && typeof message !== 'string') throw wrong('message', 'a text');
  return { state, cpuUtilization, ...(message !== undefined && { message }) };
}

function fieldsOf(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (isRecord(value)) return value;
  throw new TypeError(`the answer is not ${what}`);
}

function isTexts(value: Readonly<Record<string, unknown>>): value is Readonly<Record<string, string>> {
  return Object.values(value).every((each) => typeof each === 'string');
}

function isState(value: unknown): value is ServerState {
  return SERVER_STATES.some((state) => state === value);
}

function isPercent(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 100;
}

function wrong(field: string, what: string): TypeError {
  return new TypeError(`in the answer, "${field}" is not ${what}`);
}
