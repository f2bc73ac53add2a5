import type { Kind } from '../kind/kind.ts';
import type { KubeObject, ObjectMeta, ObjectRef } from '../kind/object.ts';

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** @default the client's */
  readonly timeoutMs?: number;
}

export interface WriteOptions extends CallOptions {
  /** The server checks and answers as if, and stores nothing. @default false */
  readonly dryRun?: boolean;
}

export interface ApplyOptions extends WriteOptions {
  /** Take fields over from other managers instead of failing with a conflict. @default true */
  readonly force?: boolean;
}

export interface DeleteOptions extends WriteOptions {
  /** Only this very object, not one that was created anew under its name. */
  readonly uid?: string | undefined;
  /** Only if it has not changed since. */
  readonly resourceVersion?: string | undefined;
  readonly propagation?: 'Foreground' | 'Background' | 'Orphan';
}

export interface Selection {
  /** Names, labels, owners and the like, and no content. @default false */
  readonly metadataOnly?: boolean;
  /** @default all */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

export interface ListOptions extends Selection, CallOptions {
  readonly limit?: number;
  readonly continue?: string;
  readonly resourceVersion?: string;
  readonly resourceVersionMatch?: 'Exact' | 'NotOlderThan';
}

export interface WatchOptions extends Selection, CallOptions {
  readonly resourceVersion?: string;
  /** First all objects there are, then a bookmark that says so (WatchList). */
  readonly sendInitialEvents?: boolean;
  /** After which the server ends the stream. */
  readonly timeoutSeconds?: number;
}

export interface PatchOptions extends WriteOptions {
  readonly subresource?: 'status';
}

export interface JsonPatchOperation {
  readonly op: 'add' | 'remove' | 'replace' | 'test';
  readonly path: string;
  readonly value?: unknown;
}

/** Which object, and (where given) which very one, in which version. */
export type ApplyMetadata = ObjectRef & {
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
};

/** An object as one writes it: with a name, and whatever fields one has something to say about. */
export type Draft<T extends KubeObject> = DeepPartial<Omit<T, 'metadata'>> & {
  readonly metadata: Partial<ObjectMeta> & ObjectRef;
};

type DeepPartial<T> = T extends readonly unknown[]
  ? T
  : T extends object
    ? { readonly [K in keyof T]?: DeepPartial<T[K]> }
    : T;

/** What a write was, for those who must know at once. */
export interface Write<T extends KubeObject = KubeObject> {
  readonly kind: Kind<T>;
  /** As the server has answered it; for a delete after which nothing is left: undefined. */
  readonly object: T | undefined;
  readonly ref: ObjectRef;
  readonly uid: string | undefined;
  /** It said which version it replaces, or was a create: nobody else's change can have come in between. */
  readonly conditional: boolean;
}

/** On whose behalf calls are made. */
export interface WriteScope {
  /** With which its calls end, unless they name another. */
  readonly signal?: AbortSignal;
  /** Called before each write; throws when it must not be made (any more). */
  assertLeader(): void;
  /** Called after each successful write that was no dry run. */
  onWrite<T extends KubeObject>(write: Write<T>): void;
}
