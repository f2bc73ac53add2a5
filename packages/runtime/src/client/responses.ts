import { apiVersionOf, type Kind, resourceOf } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';
import { isRecord } from './record.ts';
import { errorFrom } from './status.ts';

/*
 * Where JSON becomes objects. The API server has held them to their schema already; what is checked here is that an
 * answer is what was asked for and not, say, a proxy's log-in page.
 */

export interface Page<T> {
  readonly items: readonly T[];
  readonly resourceVersion: string;
  /** For the next page, unless this is the last. */
  readonly continue: string | undefined;
}

export type WatchEvent<T> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: T }
  | { readonly type: 'BOOKMARK'; readonly resourceVersion: string; readonly initialEventsEnd: boolean };

/** The replicas of a scalable object. */
export interface Scale {
  readonly spec: { readonly replicas: number };
  readonly status: { readonly replicas: number; readonly selector?: string };
}

export function objectOf<T extends KubeObject>(kind: Kind<T>, value: unknown): T {
  if (isObjectOf(kind, value)) return value;
  throw new TypeError(`the server has answered something else than one of ${resourceOf(kind)}`);
}

export function pageOf<T extends KubeObject>(kind: Kind<T>, text: string): Page<T> {
  const value: unknown = JSON.parse(text);
  if (!isRecord(value) || !isRecord(value.metadata))
    throw new TypeError(`the server has answered no list of ${resourceOf(kind)}`);
  const { resourceVersion, continue: next } = value.metadata;
  const items = Array.isArray(value.items) ? value.items : [];
  return {
    // In lists of built-in kinds the server leaves both out; who logs a Secret or makes an owner reference needs them.
    items: items.map((item) => ({
      apiVersion: apiVersionOf(kind),
      kind: kind.kind,
      ...objectOf(kind, item),
    })),
    resourceVersion: String(resourceVersion ?? ''),
    continue: typeof next === 'string' && next !== '' ? next : undefined,
  };
}

/** @throws ApiError for an event that says the stream is over */
export function watchEvent<T extends KubeObject>(kind: Kind<T>, what: string, line: string): WatchEvent<T> {
  const value: unknown = JSON.parse(line);
  const { type, object } = isRecord(value) ? value : {};
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED':
      return { type, object: objectOf(kind, object) };
    case 'BOOKMARK': {
      const metadata = isRecord(object) && isRecord(object.metadata) ? object.metadata : {};
      const annotations = isRecord(metadata.annotations) ? metadata.annotations : {};
      return {
        type,
        resourceVersion: String(metadata.resourceVersion),
        initialEventsEnd: annotations['k8s.io/initial-events-end'] === 'true',
      };
    }
    default:
      throw errorFrom(what, 500, JSON.stringify(object) ?? line);
  }
}

/** Of what a delete has removed for good: `{kind: Status, details: {uid}}`. */
export function uidOf(status: unknown): string | undefined {
  const details = isRecord(status) && isRecord(status.details) ? status.details : {};
  return typeof details.uid === 'string' ? details.uid : undefined;
}

export function scaleOf(text: string): Scale {
  const value: unknown = JSON.parse(text);
  if (isScale(value)) return value;
  throw new TypeError('the server has answered something else than a scale');
}

function isScale(value: unknown): value is Scale {
  return isRecord(value) && isRecord(value.spec) && isRecord(value.status);
}

/** By its shape: list items and watch events may come without kind and API version. */
export function isObjectOf<T extends KubeObject>(_kind: Kind<T>, value: unknown): value is T {
  return isRecord(value) && isRecord(value.metadata) && typeof value.metadata.name === 'string';
}
