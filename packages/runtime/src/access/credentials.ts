import type { Clock } from '@vmwright/core';

/** Who we are to a server. */
export interface Credentials {
  /** The value of the Authorization header, if there is one. Called for each request, so at once where it is known. */
  authorization(): string | undefined | Promise<string | undefined>;
  /**
   * After a 401: fetches them anew if that can help, and tells whether there are others now.
   * @param refused the Authorization header that the server did not take. Of many requests that were refused together,
   *   one fetches; those that come later find that another one has.
   */
  renew(refused?: string): Promise<boolean>;
}

/** For a server that knows us by our certificate, or needs not know us. */
export const noCredentials: Credentials = {
  authorization: () => undefined,
  renew: async () => false,
};

export function fixedToken(token: string): Credentials {
  return { authorization: () => `Bearer ${token}`, renew: async () => false };
}

/** A value that is fetched when first needed, kept, and fetched again when it is old or was refused. */
export interface Expiring<T> {
  readonly value: T;
  /** Wall-clock milliseconds after which it is fetched anew. */
  readonly expiresAt: number;
}

/**
 * Keeps what `fetch` gives until it is old. Fetched once however many ask at the same time; when fetching it anew fails,
 * the old one serves on until it is refused.
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

  /** What is kept now, old or not. */
  get current(): T | undefined {
    return this.#current?.value;
  }

  /** What is kept, unless it is old. */
  get fresh(): T | undefined {
    const kept = this.#current;
    return kept !== undefined && this.#clock.now() < kept.expiresAt ? kept.value : undefined;
  }

  async get(): Promise<T> {
    const kept = this.#current;
    if (kept === undefined) return this.renew();
    return this.fresh ?? this.renew().catch(() => kept.value);
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

/** A token that comes from somewhere and runs out. */
export function refreshedToken(clock: Clock, fetch: () => Promise<Expiring<string>>): Credentials {
  const token = new RefreshedValue(clock, fetch);
  return {
    authorization: () => {
      const { fresh } = token;
      return fresh === undefined ? token.get().then(bearer) : bearer(fresh);
    },
    renew: (refused) => renewRejected(token, bearer, refused),
  };
}

/**
 * Fetches anew unless that has happened since `refused` was sent; tells whether the header is another one now. Compares
 * with what was refused and not with what is kept: between a request and its 401 another one may have renewed it.
 */
export async function renewRejected<T>(
  kept: RefreshedValue<T>,
  header: (value: T) => string | undefined,
  refused: string | undefined,
): Promise<boolean> {
  const { current } = kept;
  if (refused !== undefined && current !== undefined && header(current) !== refused) return true;
  return kept.renew().then(
    (value) => refused === undefined || header(value) !== refused,
    () => false,
  );
}

function bearer(token: string): string {
  return `Bearer ${token}`;
}
