import type { Cause } from '../client/errors.ts';
import type { JsonPatchOperation } from '../client/options.ts';

export type Operation = 'CREATE' | 'UPDATE' | 'DELETE';

/** Who asks, as the API server has authenticated him. */
export interface User {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** What is known of a request beside the object that it is about. */
export interface About {
  /** Of this request, as it is found in the API server's audit log. */
  readonly uid: string;
  /** Empty when the name is still to be generated. */
  readonly name: string;
  /** Empty for kinds without namespaces. */
  readonly namespace: string;
  /** `status` where that is written; else empty. */
  readonly subresource: string;
  readonly user: User;
  /** Nothing will be stored: do nothing outside either. */
  readonly dryRun: boolean;
  /** Aborts when the API server waits no longer. */
  readonly signal: AbortSignal;
}

export type CreateRequest = About & { readonly operation: 'CREATE'; readonly before?: undefined };
export type UpdateRequest<T> = About & {
  readonly operation: 'UPDATE';
  /** As it is stored. */
  readonly before: T;
};
export type DeleteRequest = About & { readonly operation: 'DELETE'; readonly before?: undefined };

export type Allowed = {
  readonly allowed: true;
  /** Shown to the one who asks. The API server cuts them short from 4,096 characters in all on. */
  readonly warnings?: readonly string[];
  /** For the API server's audit log. */
  readonly audit?: Readonly<Record<string, string>>;
};

export type Denied = {
  readonly allowed: false;
  /** A sentence for the one who asks: what is wrong, and what to do. */
  readonly message: string;
  /** HTTP status. @default 403 */
  readonly code?: number;
  /** Which fields are to blame. */
  readonly causes?: readonly Cause[];
  readonly warnings?: readonly string[];
  readonly audit?: Readonly<Record<string, string>>;
};

export type Verdict = Allowed | Denied;

/** What a mutation comes to. */
export type Mutation = Denied | { readonly allowed: true; readonly patch: readonly JsonPatchOperation[] };

export function allow(...warnings: readonly string[]): Allowed {
  return { allowed: true, ...(warnings.length > 0 && { warnings }) };
}

export function deny(message: string, more: Omit<Denied, 'allowed' | 'message'> = {}): Denied {
  return { allowed: false, message, ...more };
}
