import { AlreadyExistsError, ConflictError, NotFoundError } from '@vmwright/runtime';
import type { Entries, EntryChanges, EntryStore } from './entry-store.ts';

/** Number of conflicting writes after which an operation fails. The controller retries it with a back-off. */
const MAX_CONFLICTS = 10;
const CONFLICTS = [ConflictError, AlreadyExistsError, NotFoundError];

/** Reads and changes the entries of a ledger within one operation. */
export interface LedgerOperation {
  /** Entries as read, or as written last by this operation. */
  readonly entries: Entries;
  /** Changes entries. @throws a conflict if `entries` are not the newest; the operation is then repeated */
  write(changes: EntryChanges): Promise<Entries>;
}

/**
 * Decisions about objects, stored in a ConfigMap before the operator carries them out.
 *
 * Guarantees: every write carries the resourceVersion of the entries that it is based on. If another replica has
 * changed the entries since, the write conflicts; the operation then reads the ConfigMap and decides again.
 *
 * Operations of this replica run one after the other, so that they do not conflict with each other. The last known
 * entries are kept in memory, so most operations need one write or none, and no read.
 */
export class Ledger {
  #known: Entries | undefined;
  #last: Promise<unknown> = Promise.resolve();

  /** Forgets the known entries, at the start of a leadership term. */
  reset(): void {
    this.#known = undefined;
  }

  /** Entries as last read or written; undefined if they have to be read first. */
  get known(): Entries | undefined {
    return this.#known;
  }

  /** Forgets the known entries if someone else has changed the ConfigMap, for example a person who deleted an entry. */
  refresh(store: Pick<EntryStore, 'version'>): Promise<void> {
    return this.#exclusively(async () => {
      const known = this.#known;
      if (known !== undefined && known.resourceVersion !== (await store.version())) this.#known = undefined;
    });
  }

  /** Returns the known entries; reads them if they are not known. */
  async read(store: EntryStore): Promise<Entries> {
    return this.#known ?? (await this.#exclusively(async () => this.#known ?? (await this.#read(store))));
  }

  /** Calls `decide` with the known entries, and again with newly read entries while its writes conflict. */
  decide<R>(store: EntryStore, decide: (operation: LedgerOperation) => Promise<R>): Promise<R> {
    return this.#exclusively(async () => {
      for (let conflicts = 0; ; conflicts++) {
        try {
          const entries = this.#known ?? (await this.#read(store));
          return await decide(this.#operation(entries, store));
        } catch (error) {
          this.#known = undefined; // also after other errors: the write may have been executed
          const isConflict = CONFLICTS.some((conflict) => error instanceof conflict);
          if (!isConflict || conflicts >= MAX_CONFLICTS) throw error;
        }
      }
    });
  }

  #operation(found: Entries, store: EntryStore): LedgerOperation {
    let entries = found;
    return {
      get entries() {
        return entries;
      },
      write: async (changes) => {
        entries = await store.write(entries, changes);
        this.#known = entries;
        return entries;
      },
    };
  }

  async #read(store: EntryStore): Promise<Entries> {
    const entries = await store.read();
    this.#known = entries;
    return entries;
  }

  #exclusively<R>(operation: () => Promise<R>): Promise<R> {
    const result = this.#last.then(operation);
    this.#last = result.catch(() => undefined);
    return result;
  }
}

/**
 * Asks the API server which of these objects do not exist any more. Returns their UIDs.
 * @param missing keys of the objects by UID
 */
export async function findAbandoned(
  missing: ReadonlyMap<string, string>,
  store: Pick<EntryStore, 'stateOf'>,
): Promise<readonly string[]> {
  const abandoned: string[] = [];
  for (const [uid, key] of missing) if ((await store.stateOf(key, uid)) === 'Gone') abandoned.push(uid);
  return abandoned;
}

/** Returns the changes that remove entries. */
export function removals(uids: readonly string[]): EntryChanges {
  return Object.fromEntries(uids.map((uid) => [uid, null]));
}
