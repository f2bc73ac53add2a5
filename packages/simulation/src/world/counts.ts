/** Counts how often each event or fault happened, to show that every fault was actually injected. */
export class Counts {
  readonly #counts = new Map<string, number>();

  add(what: string, by = 1): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + by);
  }

  of(what: string): number {
    return this.#counts.get(what) ?? 0;
  }

  /** Adds the counts of another run. */
  include(other: Counts): void {
    for (const [what, count] of other.#counts) this.add(what, count);
  }

  [Symbol.iterator](): IterableIterator<[string, number]> {
    return this.#counts.entries();
  }
}
