import type { World } from '@vmwright/runtime';

/** A row that the database keeps rejecting. */
export interface DeadLetter {
  /** `namespace/name` of the VM. */
  readonly vm: string;
  readonly rowId: string;
  readonly status: string;
  readonly error: string;
  readonly failures: number;
  /** Time of the first failure, in RFC 3339. */
  readonly since: string;
}

/** Number of failures after which a row is a dead letter. */
const MAX_FAILURES = 5;
/** Maximum number of failing rows to remember. Further failing rows are retried but not listed. */
const MAX_ENTRIES = 10_000;

/**
 * Rows whose last write failed, with the number of consecutive failures. A row with `MAX_FAILURES` failures is a dead
 * letter.
 */
export class DeadLetters {
  readonly #world: Pick<World, 'now'>;
  readonly #failing = new Map<string, DeadLetter>();

  constructor(world: Pick<World, 'now'>) {
    this.#world = world;
  }

  get size(): number {
    return this.list().length;
  }

  list(): readonly DeadLetter[] {
    return this.#failing
      .values()
      .filter(({ failures }) => failures >= MAX_FAILURES)
      .toArray();
  }

  /** Returns whether the row of a key is a dead letter. */
  has(key: string): boolean {
    return (this.#failing.get(key)?.failures ?? 0) >= MAX_FAILURES;
  }

  /** Counts a failure. @returns whether the row has just become a dead letter */
  failed(key: string, letter: Pick<DeadLetter, 'vm' | 'rowId' | 'status' | 'error'>): boolean {
    const known = this.#failing.get(key);
    if (known === undefined && this.#failing.size >= MAX_ENTRIES) return false;
    const failures = (known?.failures ?? 0) + 1;
    const since = known?.since ?? new Date(this.#world.now()).toISOString();
    this.#failing.set(key, { ...letter, failures, since });
    return failures === MAX_FAILURES;
  }

  succeeded(key: string): void {
    this.#failing.delete(key);
  }

  clear(): void {
    this.#failing.clear();
  }
}
