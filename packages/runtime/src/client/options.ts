import type { Kind } from '../kind/kind.ts';
import type { KubeObject, ObjectMeta, ObjectRef } from '../kind/object.ts';

/** Options of every call. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** Timeout in milliseconds. @default the timeout of the client */
  readonly timeoutMs?: number;
}

export interface WriteOptions extends CallOptions {
  /** The server validates the request and returns the result without storing it. @default false */
  readonly dryRun?: boolean;
}

export interface ApplyOptions extends WriteOptions {
  /** Takes ownership of fields from other managers instead of failing with a ConflictError. @default true */
  readonly force?: boolean;
}

export interface DeleteOptions extends WriteOptions {
  /** Precondition: deletes only the object with this UID, not a newer object of the same name. */
  readonly uid?: string | undefined;
  /** Precondition: deletes only this version of the object. */
  readonly resourceVersion?: string | undefined;
  readonly propagation?: 'Foreground' | 'Background' | 'Orphan';
}

/** Selects the objects of a list or watch. */
export interface Selection {
  /** Returns `metadata` only, without spec, status and data. @default false */
  readonly metadataOnly?: boolean;
  /** @default all namespaces */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

export interface ListOptions extends Selection, CallOptions {
  /** Maximum number of objects per page. @default no limit */
  readonly limit?: number;
  /** `continue` of the previous page, to get the next one. */
  readonly continue?: string;
  readonly resourceVersion?: string;
  readonly resourceVersionMatch?: 'Exact' | 'NotOlderThan';
}

export interface WatchOptions extends Selection, CallOptions {
  readonly resourceVersion?: string;
  /** Sends the existing objects first, then a bookmark with `initialEventsEnd` (WatchList). @default false */
  readonly sendInitialEvents?: boolean;
  /** Time after which the server ends the stream. @default the timeout of the server */
  readonly timeoutSeconds?: number;
}

export interface PatchOptions extends WriteOptions {
  readonly subresource?: 'status';
}

/** One operation of a JSON patch (RFC 6902). */
export interface JsonPatchOperation {
  readonly op: 'add' | 'remove' | 'replace' | 'test';
  readonly path: string;
  readonly value?: unknown;
}

/** Identifies the object to apply; `uid` and `resourceVersion` are optional preconditions. */
export type ApplyMetadata = ObjectRef & {
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
};

/** An object to create or apply: its name and any subset of its fields. */
export type Draft<T extends KubeObject> = DeepPartial<Omit<T, 'metadata'>> & {
  readonly metadata: Partial<ObjectMeta> & ObjectRef;
};

/** A type with all fields optional at every depth, except inside arrays. */
export type DeepPartial<T> = T extends readonly unknown[]
  ? T
  : T extends object
    ? { readonly [K in keyof T]?: DeepPartial<T[K]> }
    : T;

/** A successful write, as reported to `WriteScope.onWrite`. */
export interface Write<T extends KubeObject = KubeObject> {
  readonly kind: Kind<T>;
  /** The object in the server's response; undefined after a delete that removed it. */
  readonly object: T | undefined;
  readonly ref: ObjectRef;
  readonly uid: string | undefined;
  /**
   * Whether the write was a create, or carried the resource version that it replaced. If so, no other change lies
   * between the previous version and this one.
   */
  readonly conditional: boolean;
}

/** Fences and observes the writes of a scoped client. */
export interface WriteScope {
  /** Aborts calls that have no signal of their own. */
  readonly signal?: AbortSignal;
  /** Called before each write; throws when this process may no longer write. */
  assertLeader(): void;
  /** Called after each successful write that is not a dry run. */
  onWrite<T extends KubeObject>(write: Write<T>): void;
}
