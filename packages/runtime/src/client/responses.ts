import { apiVersionOf, type Kind, resourceOf } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';
import { isRecord } from './record.ts';
import { errorFrom } from './status.ts';

/*
 * Parses the responses of the API server. The server has already validated the objects against their schema. The checks
 * here only detect other responses, such as the login page of a proxy.
 */

/** A page of a list. */
export interface Page<T> {
  readonly items: readonly T[];
  /** Resource version of the snapshot that all pages of the list come from. */
  readonly resourceVersion: string;
  /** Token of the next page; undefined on the last page. */
  readonly continue: string | undefined;
}

/**
 * An event of a watch. `initialEventsEnd` is true for the bookmark that ends the initial events of a streaming list
 * (`sendInitialEvents`).
 */
export type WatchEvent<T> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: T }
  | { readonly type: 'BOOKMARK'; readonly resourceVersion: string; readonly initialEventsEnd: boolean };

/** The scale subresource of an object. */
export interface Scale {
  readonly spec: { readonly replicas: number };
  readonly status: { readonly replicas: number; readonly selector?: string };
}

export function objectOf<T extends KubeObject>(kind: Kind<T>, value: unknown): T {
  if (isObjectOf(kind, value)) return value;
  throw new TypeError(`the server's response is not an object of ${resourceOf(kind)}`);
}

export function pageOf<T extends KubeObject>(kind: Kind<T>, text: string): Page<T> {
  const value: unknown = JSON.parse(text);
  if (!isRecord(value) || !isRecord(value.metadata))
    throw new TypeError(`the server's response is not a list of ${resourceOf(kind)}`);
  const { resourceVersion, continue: next } = value.metadata;
  const items = Array.isArray(value.items) ? value.items : [];
  return {
    // Adds apiVersion and kind, which owner references and events need: the server omits them in lists of built-in
    // kinds.
    items: items.map((item) => ({
      apiVersion: apiVersionOf(kind),
      kind: kind.kind,
      ...objectOf(kind, item),
    })),
    resourceVersion: String(resourceVersion ?? ''),
    continue: typeof next === 'string' && next !== '' ? next : undefined,
  };
}

/** Parses a line of a watch. @throws ApiError for an ERROR event, which ends the stream */
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

/** Returns the UID in the response to a delete that removed the object: `{kind: Status, details: {uid}}`. */
export function uidOf(status: unknown): string | undefined {
  const details = isRecord(status) && isRecord(status.details) ? status.details : {};
  return typeof details.uid === 'string' ? details.uid : undefined;
}

export function scaleOf(text: string): Scale {
  const value: unknown = JSON.parse(text);
  if (isScale(value)) return value;
  throw new TypeError("the server's response is not a Scale");
}

function isScale(value: unknown): value is Scale {
  return isRecord(value) && isRecord(value.spec) && isRecord(value.status);
}

/** Checks the shape only: list items may come without kind and apiVersion. */
export function isObjectOf<T extends KubeObject>(_kind: Kind<T>, value: unknown): value is T {
  return isRecord(value) && isRecord(value.metadata) && typeof value.metadata.name === 'string';
}
