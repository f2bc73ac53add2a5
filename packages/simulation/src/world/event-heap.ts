/** An event scheduled at a virtual time. */
export interface ScheduledEvent {
  readonly at: number;
  readonly order: number;
  readonly act: () => void;
  /** The process to which the event belongs. Events of a crashed process are skipped. */
  readonly owner: Owner | undefined;
  cancelled: boolean;
}

export interface Owner {
  readonly gone: boolean;
}

/**
 * Binary heap of scheduled events, ordered by time and then by insertion. A cancelled event stays in the heap until it
 * reaches the top, because removing it from the middle costs more than skipping it at the top. Most cancelled events
 * are request deadlines.
 */
export class EventHeap {
  readonly #heap: ScheduledEvent[] = [];

  get size(): number {
    return this.#heap.length;
  }

  add(planned: ScheduledEvent): void {
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

  /** Returns the next live event without removing it. Drops cancelled events from the top of the heap. */
  peek(): ScheduledEvent | undefined {
    for (let first = this.#heap[0]; first !== undefined; first = this.#heap[0]) {
      if (!first.cancelled && !first.owner?.gone) return first;
      this.#removeFirst();
    }
    return undefined;
  }

  take(): ScheduledEvent | undefined {
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

function isBefore(a: ScheduledEvent, b: ScheduledEvent): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
