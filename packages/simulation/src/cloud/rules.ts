import type { Labels, NewServer } from '@vmwright/cloud';
import { isJson, type Json } from '../apiserver/json.ts';
import { invalid, Problem } from './problem.ts';

/* Request validation of the modelled cloud. */

const NAME = /^[A-Za-z0-9._-]{1,63}$/;
const KEY = /^[\x21-\x7e]{1,255}$/;
const LABEL_KEY = /^[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,126}[A-Za-z0-9])?$/;
const LABEL_VALUE = /^[^\p{Cc}\p{Cs}]{0,255}$/u;
const SELECTOR = /^[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,126}[A-Za-z0-9])?(?:=[^\p{Cc}\p{Cs}]{0,255})?$/u;
const CURSOR = /^[0-9]{1,15}$/;
const MAX_LABELS = 64;
const MAX_SELECTORS = 16;
const MAX_SHOWN_LENGTH = 100;

export function checkedName(name: unknown): string {
  if (typeof name !== 'string') throw invalid('The body: name must be string.');
  if (NAME.test(name)) return name;
  const shown = name.length > MAX_SHOWN_LENGTH ? `${name.slice(0, MAX_SHOWN_LENGTH)}…` : name;
  const rule = 'a name has 1 to 63 characters, each a letter, digit, hyphen, underscore or dot';
  throw new Problem(422, 'INVALID_NAME', `${JSON.stringify(shown)} is not a valid server name: ${rule}.`);
}

export function checkedKey(key: string | undefined): string | undefined {
  if (key !== undefined && !KEY.test(key)) throw invalid('The headers: idempotency-key is invalid.');
  return key;
}

export function newServerIn(body: string | undefined): NewServer {
  const { name, labels = {}, ...more } = fieldsIn(body);
  if (Object.keys(more).length > 0) throw invalid('The body has unknown fields.');
  const wanted = checkedName(name);
  return { name: wanted, labels: checkedLabels(labels, false) };
}

/** Returns the label changes that a PATCH requests; null removes a label. */
export function relabellingIn(body: string | undefined): Readonly<Record<string, string | null>> {
  const { labels, ...more } = fieldsIn(body);
  if (Object.keys(more).length > 0) throw invalid('The body has unknown fields.');
  return checkedLabels(labels, true);
}

export function checkedCount(labels: Labels): Labels {
  if (Object.keys(labels).length > MAX_LABELS)
    throw invalid(`A server has at most ${MAX_LABELS} labels. Remove some labels first.`);
  return labels;
}

interface Selector {
  readonly key: string;
  /** Required value of the label; undefined matches any value. */
  readonly value: string | undefined;
}

export interface ListQuery {
  readonly limit: number;
  /** `seq` of the last server of the previous page; 0 for the first page. */
  readonly after: number;
  readonly name: string | undefined;
  readonly selectors: readonly Selector[];
}

export function listQueryIn(text: string): ListQuery {
  const query = new URLSearchParams(text);
  for (const name of query.keys())
    if (!['limit', 'cursor', 'name', 'label'].includes(name))
      throw invalid(`The query has an unknown parameter "${name}".`);
  // Checks the parameters in the same order as the real cloud, because only the first error is reported.
  const limit = limitIn(query.get('limit') ?? '100');
  const cursor = query.get('cursor');
  if (cursor !== null && !CURSOR.test(cursor)) throw invalid('The query: cursor is invalid.');
  const given = query.get('name');
  const name = given === null ? undefined : checkedName(given);
  const labels = query.getAll('label');
  if (labels.length > MAX_SELECTORS || !labels.every((label) => SELECTOR.test(label)))
    throw invalid('The query: label is invalid, or there are too many.');
  return { limit, after: placeIn(cursor), name, selectors: labels.map(selectorIn) };
}

export function cursorOf(seq: number): string {
  return String(seq);
}

function placeIn(cursor: string | null): number {
  return cursor === null ? 0 : Number(cursor);
}

function limitIn(text: string): number {
  const limit = Number(text);
  if (/^\d+$/.test(text) && limit >= 1 && limit <= 1_000) return limit;
  throw invalid('The query: limit must be from 1 to 1000.');
}

function selectorIn(text: string): Selector {
  const at = text.indexOf('=');
  return at === -1 ? { key: text, value: undefined } : { key: text.slice(0, at), value: text.slice(at + 1) };
}

function checkedLabels(labels: unknown, nulls: true): Readonly<Record<string, string | null>>;
function checkedLabels(labels: unknown, nulls: false): Labels;
function checkedLabels(labels: unknown, nulls: boolean): Readonly<Record<string, string | null>> {
  if (!isJson(labels)) throw invalid('The body: labels must be object.');
  const checked: Record<string, string | null> = {};
  for (const [key, value] of Object.entries(labels)) {
    if (!LABEL_KEY.test(key)) throw invalid('The body: labels has an invalid key.');
    if (!((nulls && value === null) || (typeof value === 'string' && LABEL_VALUE.test(value))))
      throw invalid(`The body: labels.${key} has an invalid value.`);
    checked[key] = value;
  }
  if (Object.keys(checked).length > MAX_LABELS) throw invalid('The body: labels has too many entries.');
  return checked;
}

function fieldsIn(body: string | undefined): Json {
  let value: unknown;
  try {
    value = JSON.parse(body ?? '');
  } catch {
    throw new Problem(400, 'MALFORMED_REQUEST', 'The body is not valid JSON.');
  }
  if (!isJson(value)) throw invalid('The body must be object.');
  return value;
}
