import type { Cause } from '../client/errors.ts';
import type { JsonPatchOperation } from '../client/options.ts';

export type Operation = 'CREATE' | 'UPDATE' | 'DELETE';

/** User that made the request, as authenticated by the API server. */
export interface User {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** Information about an admission request. */
export interface RequestInfo {
  /** UID of the review. */
  readonly uid: string;
  /** Name of the object; empty if it will be generated. */
  readonly name: string;
  /** Namespace of the object; empty for cluster-scoped kinds. */
  readonly namespace: string;
  /** Subresource of the request, such as `status`; empty for the object itself. */
  readonly subresource: string;
  readonly user: User;
  /** Whether the request is a dry run: nothing will be stored, and handlers must not change external state. */
  readonly dryRun: boolean;
  /** Aborts shortly before the API server stops waiting for the response. */
  readonly signal: AbortSignal;
}

export type CreateRequest = RequestInfo & { readonly operation: 'CREATE'; readonly before?: undefined };
export type UpdateRequest<T> = RequestInfo & {
  readonly operation: 'UPDATE';
  /** Stored object before the update. */
  readonly before: T;
};
export type DeleteRequest = RequestInfo & {
  readonly operation: 'DELETE';
  readonly before?: undefined;
  /** Propagation policy for the dependents: `Background`, `Foreground` or `Orphan`; undefined for the default. */
  readonly propagation: string | undefined;
};

export type Allowed = {
  readonly allowed: true;
  /** Warnings that kubectl shows. The API server truncates them above 4,096 characters in total. */
  readonly warnings?: readonly string[];
  /** Annotations for the API server's audit log. */
  readonly audit?: Readonly<Record<string, string>>;
};

export type Denied = {
  readonly allowed: false;
  /** Message for the user: what is wrong, and how to fix it. */
  readonly message: string;
  /** HTTP status. @default 403 */
  readonly code?: number;
  /** Invalid fields. */
  readonly causes?: readonly Cause[];
  readonly warnings?: readonly string[];
  readonly audit?: Readonly<Record<string, string>>;
};

export type Verdict = Allowed | Denied;

/** Result of a mutation. */
export type Mutation = Denied | { readonly allowed: true; readonly patch: readonly JsonPatchOperation[] };

/** Allows a request. @param warnings warnings for the user */
export function allow(...warnings: readonly string[]): Allowed {
  return { allowed: true, ...(warnings.length > 0 && { warnings }) };
}

/** Denies a request. @param message what is wrong, and how to fix it */
export function deny(message: string, more: Omit<Denied, 'allowed' | 'message'> = {}): Denied {
  return { allowed: false, message, ...more };
}
