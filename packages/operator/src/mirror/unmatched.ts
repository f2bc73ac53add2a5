import { type Clock, exponentialMs } from '@vmwright/runtime';

const BACKOFF = { baseMs: 1_000, maxMs: 30_000 };

interface Search {
  searches: number;
  nextAt: number;
}

/**
 * VMs without a row of their own. SSVirt does not manage most of them. For the others, it inserts the row after it
 * creates the VM. The table is searched soon after a VM appears, and then at growing intervals. One search covers
 * several VMs.
 */
export class Unmatched {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #searches = new Map<string, Search>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#searches.size;
  }

  keys(): readonly string[] {
    return [...this.#searches.keys()];
  }

  has(key: string): boolean {
    return this.#searches.has(key);
  }

  /** Adds a VM. If it was added before, keeps the time of its next search. */
  add(key: string): void {
    if (!this.#searches.has(key))
      this.#searches.set(key, { searches: 0, nextAt: this.#clock.monotonic() + BACKOFF.baseMs });
  }

  delete(key: string): void {
    this.#searches.delete(key);
  }

  clear(): void {
    this.#searches.clear();
  }

  /** Returns the number of times that the row of a VM was searched for. */
  searches(key: string): number {
    return this.#searches.get(key)?.searches ?? 0;
  }

  /** Returns the VMs whose row has to be searched for now, and schedules their next search. */
  due(): readonly string[] {
    const now = this.#clock.monotonic();
    const due: string[] = [];
    for (const [key, search] of this.#searches) {
      if (search.nextAt > now) continue;
      search.searches += 1;
      search.nextAt = now + exponentialMs(search.searches + 1, BACKOFF);
      due.push(key);
    }
    return due;
  }
}
