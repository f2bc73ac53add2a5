import type { Labels, NewServer } from '@vmwright/cloud';
import type { Cause, CloudChange, CloudServer } from './server.ts';

/** The first create request with an idempotency key: a fingerprint of its content, and the id of the created server. */
interface CreateRecord {
  readonly fingerprint: string;
  readonly id: string;
}

/**
 * Result of looking up a create request by its idempotency key:
 * - `same`: the key created this server with the same content.
 * - `reused`: the key created this server with other content.
 * - `gone`: the server that the key created is deleted or being deleted.
 */
export type KeyLookup =
  | { readonly is: 'same'; readonly server: CloudServer }
  | { readonly is: 'reused' | 'gone'; readonly id: string };

/** Store of the servers, their history and their idempotency keys. Keys outlive their servers. */
export class Servers {
  readonly #now: () => number;
  readonly #servers = new Map<string, CloudServer>();
  readonly #keys = new Map<string, CreateRecord>();
  readonly #history: CloudChange[] = [];
  readonly #listeners: ((change: CloudChange) => void)[] = [];
  #seq = 0;

  /** @param now milliseconds since 1970 */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Returns the servers in creation order. */
  all(): Iterable<CloudServer> {
    return this.#servers.values();
  }

  get(id: string): CloudServer | undefined {
    return this.#servers.get(id);
  }

  named(name: string): CloudServer | undefined {
    for (const server of this.#servers.values()) if (server.name === name) return server;
    return undefined;
  }

  /** Returns the servers as of a moment in the past, in creation order. */
  at(ms: number): readonly CloudServer[] {
    const then = new Map(this.#servers);
    for (let i = this.#history.length - 1; i >= 0; i--) {
      const { atMs, before, after } = this.#history[i] ?? NOTHING;
      if (atMs <= ms) break;
      if (before !== undefined) then.set(before.id, before);
      else if (after !== undefined) then.delete(after.id);
    }
    return [...then.values()].sort((a, b) => a.seq - b.seq);
  }

  /** All changes in order. */
  get history(): readonly CloudChange[] {
    return this.#history;
  }

  listen(listener: (change: CloudChange) => void): void {
    this.#listeners.push(listener);
  }

  /** Looks up a create request by its idempotency key. @returns undefined for a new key */
  known(key: string, wanted: NewServer): KeyLookup | undefined {
    const kept = this.#keys.get(key);
    if (kept === undefined) return undefined;
    const { id, fingerprint } = kept;
    const server = this.#servers.get(id);
    // Treats a server that is being deleted as gone. Otherwise, the result would depend on how long the deletion takes.
    if (server === undefined || server.state === 'deleting') return { is: 'gone', id };
    return fingerprint === fingerprintOf(wanted) ? { is: 'same', server } : { is: 'reused', id };
  }

  /** Adds a server. The caller has checked that the name is free and the idempotency key is new. */
  add(
    id: string,
    wanted: NewServer,
    key: string | undefined,
    state: CloudServer['state'],
    cause: Cause,
  ): CloudServer {
    this.#seq += 1;
    const { name, labels = {} } = wanted;
    const createdAt = new Date(this.#now()).toISOString();
    const server: CloudServer = {
      seq: this.#seq,
      id,
      name,
      labels,
      state,
      cpuUtilization: 0,
      createdAt,
      key,
    };
    if (key !== undefined) this.#keys.set(key, { fingerprint: fingerprintOf(wanted), id });
    this.#put(undefined, server, cause);
    return server;
  }

  replace(before: CloudServer, after: CloudServer, cause: Cause): void {
    this.#put(before, after, cause);
  }

  remove(server: CloudServer, cause: Cause): void {
    this.#put(server, undefined, cause);
  }

  #put(before: CloudServer | undefined, after: CloudServer | undefined, cause: Cause): void {
    if (after !== undefined) this.#servers.set(after.id, after);
    else if (before !== undefined) this.#servers.delete(before.id);
    const change = { atMs: this.#now(), before, after, cause };
    this.#history.push(change);
    for (const listener of this.#listeners) listener(change);
  }
}

const NOTHING: CloudChange = {
  atMs: Number.NEGATIVE_INFINITY,
  before: undefined,
  after: undefined,
  cause: 'itself',
};

/** Returns a fingerprint of the content of a create request. It does not depend on the order of the labels. */
function fingerprintOf({ name, labels = {} }: NewServer): string {
  return JSON.stringify([name, sorted(labels)]);
}

function sorted(labels: Labels): readonly (readonly [string, string])[] {
  return Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
}
