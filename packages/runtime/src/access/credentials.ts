import type { Clock } from '@vmwright/core';

/** Credentials that are sent with each request to a server. */
export interface Credentials {
  /**
   * Returns the value of the Authorization header, if any. Called for each request. Returns a promise only if the value
   * is not cached.
   */
  authorization(): string | undefined | Promise<string | undefined>;
  /**
   * Fetches new credentials after a 401 response, unless they have changed since the rejected request. Concurrent calls
   * share one fetch.
   * @param rejected the Authorization header that the server rejected
   * @returns whether the credentials now differ from the rejected ones; if so, the caller should retry
   */
  renew(rejected?: string): Promise<boolean>;
}

/** Sends no Authorization header: for client certificates and anonymous access. */
export const noCredentials: Credentials = {
  authorization: () => undefined,
  renew: async () => false,
};

/** A bearer token that never changes. */
export function fixedToken(token: string): Credentials {
  return { authorization: () => `Bearer ${token}`, renew: async () => false };
}

/** A fetched value and the time until which it may be cached. */
export interface Expiring<T> {
  readonly value: T;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/**
 * Caches the result of `fetch` until it expires. Concurrent callers share one fetch. When a fetch fails, the expired
 * value stays in use, and the next call fetches again.
 */
export class RefreshedValue<T> {
  readonly #clock: Clock;
  readonly #fetch: () => Promise<Expiring<T>>;
  #current: Expiring<T> | undefined;
  #fetching: Promise<T> | undefined;

  constructor(clock: Clock, fetch: () => Promise<Expiring<T>>) {
    this.#clock = clock;
    this.#fetch = fetch;
  }

  /** The cached value, expired or not. */
  get current(): T | undefined {
    return this.#current?.value;
  }

  /** The cached value unless it has expired. */
  get fresh(): T | undefined {
    const current = this.#current;
    return current !== undefined && this.#clock.now() < current.expiresAt ? current.value : undefined;
  }

  async get(): Promise<T> {
    const current = this.#current;
    if (current === undefined) return this.renew();
    return this.fresh ?? this.renew().catch(() => current.value);
  }

  renew(): Promise<T> {
    this.#fetching ??= this.#fetch()
      .then((fetched) => {
        this.#current = fetched;
        return fetched.value;
      })
      .finally(() => {
        this.#fetching = undefined;
      });
    return this.#fetching;
  }
}

/** A bearer token that is fetched when first needed and again when it expires or is rejected. */
export function refreshedToken(clock: Clock, fetch: () => Promise<Expiring<string>>): Credentials {
  const token = new RefreshedValue(clock, fetch);
  return {
    authorization: () => {
      const { fresh } = token;
      return fresh === undefined ? token.get().then(bearer) : bearer(fresh);
    },
    renew: (rejected) => renewRejected(token, bearer, rejected),
  };
}

/**
 * Fetches a new value unless the cached header already differs from `rejected`: between a request and its 401 response,
 * another request may have renewed the value. Returns whether the header now differs from `rejected`; if `rejected` is
 * undefined, whether the fetch succeeded.
 */
export async function renewRejected<T>(
  cached: RefreshedValue<T>,
  header: (value: T) => string | undefined,
  rejected: string | undefined,
): Promise<boolean> {
  const { current } = cached;
  if (rejected !== undefined && current !== undefined && header(current) !== rejected) return true;
  return cached.renew().then(
    (value) => rejected === undefined || header(value) !== rejected,
    () => false,
  );
}

function bearer(token: string): string {
  return `Bearer ${token}`;
}
