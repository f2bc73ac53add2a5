import { apiError } from '@vmwright/runtime';
import type { Entries, EntryStore, ObjectState } from './entry-store.ts';

/**
 * The ConfigMap of a ledger and the objects that it refers to, for tests. Each read and write takes as many microtasks
 * as `turns` returns, so that reads and writes of several replicas interleave.
 */
export class EntryServer {
  entries: Entries = { resourceVersion: undefined, values: new Map() };
  /** UIDs of the objects that exist. */
  readonly objects = new Set<string>();
  /** UIDs of the objects that the operator is not allowed to read. */
  readonly unreadable = new Set<string>();
  /** Largest number of entries that existed at the same time. */
  most = 0;
  writes = 0;
  reads = 0;
  readonly #turns: () => number;

  constructor(turns: () => number = () => 1) {
    this.#turns = turns;
  }

  readonly store: EntryStore = {
    read: async () => {
      await this.#wait();
      this.reads++;
      return this.entries;
    },
    write: async ({ resourceVersion }, changes) => {
      await this.#wait();
      this.writes++;
      if (resourceVersion !== this.entries.resourceVersion)
        throw apiError('the object has been modified', { status: 409 });
      const values = new Map(this.entries.values);
      for (const [uid, value] of Object.entries(changes))
        if (value === null) values.delete(uid);
        else values.set(uid, value);
      this.entries = { resourceVersion: String(Number(resourceVersion ?? 0) + 1), values };
      this.most = Math.max(this.most, values.size);
      return this.entries;
    },
    version: async () => this.entries.resourceVersion,
    stateOf: async (_, uid) => this.#stateOf(uid),
  };

  #stateOf(uid: string): ObjectState {
    if (this.unreadable.has(uid)) return 'Unreadable';
    return this.objects.has(uid) ? 'Exists' : 'Gone';
  }

  async #wait(): Promise<void> {
    for (let turn = this.#turns(); turn > 0; turn--) await Promise.resolve();
  }
}
