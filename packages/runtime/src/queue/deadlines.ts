/** Something that waits for a moment; the heap keeps its place in `slot`. */
export interface Waiting {
  readyAt: number;
  /** Tells entries of the same moment apart, so that they leave in the order they came. */
  order: number;
  slot: number;
}

/** A binary heap of what waits, earliest first, from which an entry can be taken out or brought forward. */
export class Deadlines<T extends Waiting> {
  readonly #heap: T[] = [];

  get size(): number {
    return this.#heap.length;
  }

  get first(): T | undefined {
    return this.#heap[0];
  }

  add(entry: T): void {
    this.#heap.push(entry);
    this.#rise(entry, this.#heap.length - 1);
  }

  /** To be called after an entry's moment was brought forward. */
  sooner(entry: T): void {
    this.#rise(entry, entry.slot);
  }

  remove(entry: T): void {
    const last = this.#heap.pop();
    if (last === undefined || last === entry) return;
    const { slot } = entry;
    this.#rise(last, slot);
    this.#sink(last, last.slot);
  }

  #rise(entry: T, from: number): void {
    let slot = from;
    while (slot > 0) {
      const up = (slot - 1) >> 1;
      const parent = this.#heap[up];
      if (parent === undefined || !before(entry, parent)) break;
      this.#put(parent, slot);
      slot = up;
    }
    this.#put(entry, slot);
  }

  #sink(entry: T, from: number): void {
    let slot = from;
    for (;;) {
      const left = this.#heap[2 * slot + 1];
      const right = this.#heap[2 * slot + 2];
      const child = right !== undefined && left !== undefined && before(right, left) ? right : left;
      if (child === undefined || !before(child, entry)) break;
      const down = child.slot;
      this.#put(child, slot);
      slot = down;
    }
    this.#put(entry, slot);
  }

  #put(entry: T, slot: number): void {
    this.#heap[slot] = entry;
    entry.slot = slot;
  }
}

function before(a: Waiting, b: Waiting): boolean {
  return a.readyAt < b.readyAt || (a.readyAt === b.readyAt && a.order < b.order);
}
