/** Entry of a `DelayHeap`. */
export interface Delayed {
  readyAt: number;
  /** Insertion order, which breaks ties between entries with the same `readyAt`. */
  order: number;
  /** Index in the heap, maintained by the heap. */
  slot: number;
}

/** Binary min-heap of entries by ready time. Entries can be removed or brought forward in O(log n). */
export class DelayHeap<T extends Delayed> {
  readonly #heap: T[] = [];

  get size(): number {
    return this.#heap.length;
  }

  get first(): T | undefined {
    return this.#heap[0];
  }

  add(entry: T): void {
    this.#heap.push(entry);
    this.#siftUp(entry, this.#heap.length - 1);
  }

  /** Restores the order after `readyAt` of an entry was reduced. */
  bringForward(entry: T): void {
    this.#siftUp(entry, entry.slot);
  }

  remove(entry: T): void {
    const last = this.#heap.pop();
    if (last === undefined || last === entry) return;
    const { slot } = entry;
    this.#siftUp(last, slot);
    this.#siftDown(last, last.slot);
  }

  #siftUp(entry: T, from: number): void {
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

  #siftDown(entry: T, from: number): void {
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

function before(a: Delayed, b: Delayed): boolean {
  return a.readyAt < b.readyAt || (a.readyAt === b.readyAt && a.order < b.order);
}
