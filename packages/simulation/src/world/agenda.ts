/** Something that is to happen. */
export interface Planned {
  readonly at: number;
  readonly order: number;
  readonly act: () => void;
  /** Whose it is; what belongs to one who is gone does not happen. */
  readonly owner: Owner | undefined;
  cancelled: boolean;
}

export interface Owner {
  readonly gone: boolean;
}

/**
 * What is to happen, by time: a binary heap. What is cancelled stays in it until its turn, since most of it is the
 * deadlines of requests, and taking one out of the middle costs more than passing over it.
 */
export class Agenda {
  readonly #heap: Planned[] = [];

  get size(): number {
    return this.#heap.length;
  }

  add(planned: Planned): void {
    const heap = this.#heap;
    let slot = heap.length;
    heap.push(planned);
    while (slot > 0) {
      const parent = (slot - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || !isBefore(planned, above)) break;
      heap[slot] = above;
      slot = parent;
    }
    heap[slot] = planned;
  }

  /** The next that is still to happen, left in its place. */
  peek(): Planned | undefined {
    for (let first = this.#heap[0]; first !== undefined; first = this.#heap[0]) {
      if (!first.cancelled && !first.owner?.gone) return first;
      this.#removeFirst();
    }
    return undefined;
  }

  take(): Planned | undefined {
    const first = this.peek();
    if (first !== undefined) this.#removeFirst();
    return first;
  }

  #removeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let slot = 0;
    for (;;) {
      const left = 2 * slot + 1;
      const a = heap[left];
      if (a === undefined) break;
      const b = heap[left + 1];
      const [child, below] = b !== undefined && isBefore(b, a) ? [left + 1, b] : [left, a];
      if (!isBefore(below, last)) break;
      heap[slot] = below;
      slot = child;
    }
    heap[slot] = last;
  }
}

function isBefore(a: Planned, b: Planned): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
