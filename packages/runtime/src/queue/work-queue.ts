import type { BackoffOptions, Clock, Timer } from '@vmwright/core';
import { Backoff } from './backoff.ts';
import { type Delayed, DelayHeap } from './delay-heap.ts';

/** Default priority, used for changes. */
export const NORMAL = 0;
/**
 * Priority of keys from the initial list and from resyncs, so that changes never wait behind them. The value is the
 * same as in controller-runtime.
 */
export const LOW = -100;

export interface AddOptions {
  /** Keys with a higher priority are processed first. @default NORMAL */
  readonly priority?: number;
  /** Minimum delay before the key becomes ready, in milliseconds. @default 0 */
  readonly afterMs?: number;
}

export interface RetryOptions {
  /** @default NORMAL */
  readonly priority?: number;
  /** Minimum delay in milliseconds, for example from a Retry-After header. @default 0 */
  readonly atLeastMs?: number | undefined;
}

/** Key that was handed to a worker. No other worker gets it until `done` is called. */
export interface Item {
  readonly key: string;
  readonly priority: number;
}

/** State of a key in a queue, for debugging. */
export interface QueuedKey {
  readonly key: string;
  /** State of the key: `waiting` for its time, `ready` for a worker, or `processing`. */
  readonly state: 'waiting' | 'ready' | 'processing';
  readonly priority: number;
  /** Time in this state so far, in milliseconds; absent while the key waits. */
  readonly forMs?: number;
  /** Time until a waiting key becomes ready, in milliseconds. */
  readonly readyInMs?: number;
  /** Number of consecutive failures. */
  readonly failures: number;
  /** Whether the key was added again during its processing; if so, it is queued again after `done`. */
  readonly isAddedAgain?: boolean;
}

/** Receives queue events, for metrics. */
export interface QueueObserver {
  added(): void;
  taken(waitedMs: number): void;
  finished(workedMs: number): void;
  retried(): void;
}

export interface WorkQueueOptions {
  readonly clock: Clock;
  readonly backoff?: Partial<BackoffOptions>;
  readonly observer?: QueueObserver;
}

interface Entry extends Item, Delayed {
  state: 'waiting' | 'ready' | 'processing';
  priority: number;
  /** Time at which the key entered its current state. */
  since: number;
  /** Next priority and ready time of the key, if it was added again while it was processed. */
  requeue: { priority: number; readyAt: number } | undefined;
  next: Entry | undefined;
  previous: Entry | undefined;
}

/** FIFO list of ready entries of one priority. Doubly linked, so that an entry can be removed from the middle. */
interface Level {
  readonly priority: number;
  head: Entry | undefined;
  tail: Entry | undefined;
}

/**
 * Deduplicating priority queue of keys to reconcile, like client-go's workqueue.
 *
 * Guarantees:
 * - There is one entry per key. Adding a queued key can only bring it forward (earlier time, higher priority).
 * - One worker at a time processes a key. A key added while it is processed is queued again after `done`, so no change
 *   is lost.
 * - The ready key with the highest priority is processed first; keys of the same priority are processed in FIFO order.
 * - The retry delay of a key grows only with its own failures (see `Backoff`).
 */
export class WorkQueue {
  readonly #clock: Clock;
  readonly #backoff: Backoff;
  readonly #observer: QueueObserver | undefined;
  readonly #entries = new Map<string, Entry>();
  readonly #levels: Level[] = [];
  readonly #delayed = new DelayHeap<Entry>();
  readonly #waitingWorkers: ((item: Item | undefined) => void)[] = [];
  readonly #onIdle: (() => void)[] = [];
  #timer: { readonly at: number; readonly timer: Timer } | undefined;
  #order = 0;
  #ready = 0;
  #processing = 0;
  #closed = false;

  constructor({ clock, backoff, observer }: WorkQueueOptions) {
    this.#clock = clock;
    this.#backoff = new Backoff(backoff);
    this.#observer = observer;
  }

  /** Number of keys that are ready and wait for a worker. */
  get depth(): number {
    return this.#ready;
  }

  /** Time for which each key in progress has been processed, in milliseconds. */
  get working(): number[] {
    const now = this.#clock.monotonic();
    return [...this.#entries.values()].flatMap((entry) =>
      entry.state === 'processing' ? [now - entry.since] : [],
    );
  }

  /** All keys, in the order in which they were added. */
  get keys(): QueuedKey[] {
    const now = this.#clock.monotonic();
    return [...this.#entries.values()].map(({ key, state, priority, since, readyAt, requeue }) => ({
      key,
      state,
      priority,
      failures: this.failures(key),
      ...(state === 'waiting'
        ? { readyInMs: Math.round(readyAt - now) }
        : { forMs: Math.round(now - since) }),
      ...(state === 'processing' && { isAddedAgain: requeue !== undefined }),
    }));
  }

  /** Enqueues a key. Does nothing if the queue is closed. */
  add(key: string, { priority = NORMAL, afterMs = 0 }: AddOptions = {}): void {
    const now = this.#clock.monotonic();
    this.#add(key, priority, afterMs > 0 ? now + afterMs : 0, now);
  }

  /** Enqueues a failed key after its back-off, or after `atLeastMs` if that is longer. Call it before `done`. */
  retry(key: string, { priority = NORMAL, atLeastMs = 0 }: RetryOptions = {}): void {
    this.#observer?.retried();
    const now = this.#clock.monotonic();
    this.#add(key, priority, Math.max(this.#backoff.failed(key, now), now + atLeastMs), now);
  }

  /** Resets the back-off of a key, for example after a success. */
  forget(key: string): void {
    this.#backoff.succeeded(key);
  }

  /** Returns the number of consecutive failures of a key. */
  failures(key: string): number {
    return this.#backoff.failures(key);
  }

  /** Returns the next ready key; undefined if there is none. */
  tryTake(): Item | undefined {
    if (this.#closed) return undefined;
    for (const level of this.#levels) {
      const entry = level.head;
      if (entry === undefined) continue;
      this.#unlink(entry, level);
      const now = this.#clock.monotonic();
      this.#observer?.taken(now - entry.since);
      entry.state = 'processing';
      entry.since = now;
      this.#processing += 1;
      return entry;
    }
    return undefined;
  }

  /** Waits for the next ready key and returns it; undefined when the queue is closed. */
  take(): Promise<Item | undefined> {
    const item = this.tryTake();
    if (item !== undefined || this.#closed) return Promise.resolve(item);
    return new Promise((resolve) => this.#waitingWorkers.push(resolve));
  }

  /**
   * Ends the processing of a key. Queues the key again if it was added during the processing.
   * @throws Error if the key is not being processed
   */
  done(key: string): void {
    const entry = this.#entries.get(key);
    if (entry?.state !== 'processing') throw new Error(`${key} is not being processed`);
    this.#processing -= 1;
    const now = this.#clock.monotonic();
    this.#observer?.finished(now - entry.since);
    const { requeue } = entry;
    if (requeue === undefined || this.#closed) {
      this.#entries.delete(key);
    } else {
      entry.requeue = undefined;
      entry.priority = requeue.priority;
      this.#place(entry, requeue.readyAt, now);
    }
    if (this.#closed && this.#processing === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  /** Drops all queued keys and ignores new ones. Resolves when no key is being processed any more. */
  close(): Promise<void> {
    this.#closed = true;
    this.#timer?.timer.cancel();
    this.#timer = undefined;
    for (const entry of this.#entries.values()) {
      if (entry.state === 'waiting') this.#delayed.remove(entry);
      if (entry.state === 'ready') this.#unlink(entry, this.#level(entry.priority));
      if (entry.state !== 'processing') this.#entries.delete(entry.key);
    }
    for (const resolve of this.#waitingWorkers.splice(0)) resolve(undefined);
    return this.#processing === 0 ? Promise.resolve() : new Promise((resolve) => this.#onIdle.push(resolve));
  }

  /** Reopens a closed queue. */
  open(): void {
    this.#closed = false;
  }

  /** @param readyAt time at which the key becomes ready; 0 for immediately */
  #add(key: string, priority: number, readyAt: number, now: number): void {
    if (this.#closed) return;
    const entry = this.#entries.get(key);
    if (entry === undefined) {
      const created = newEntry(key, priority);
      this.#entries.set(key, created);
      this.#place(created, readyAt, now);
      return;
    }
    switch (entry.state) {
      case 'processing':
        entry.requeue =
          entry.requeue === undefined
            ? { priority, readyAt }
            : {
                priority: Math.max(entry.requeue.priority, priority),
                readyAt: Math.min(entry.requeue.readyAt, readyAt),
              };
        break;
      case 'waiting':
        entry.priority = Math.max(entry.priority, priority);
        if (readyAt >= entry.readyAt) break;
        if (readyAt > now) {
          entry.readyAt = readyAt;
          this.#delayed.bringForward(entry);
          this.#armTimer();
        } else {
          this.#delayed.remove(entry);
          this.#makeReady(entry, now);
        }
        break;
      case 'ready':
        if (priority <= entry.priority || readyAt > now) break;
        this.#unlink(entry, this.#level(entry.priority));
        entry.priority = priority;
        this.#link(entry);
        break;
    }
  }

  #place(entry: Entry, readyAt: number, now: number): void {
    this.#observer?.added();
    if (readyAt <= now) {
      this.#makeReady(entry, now);
      return;
    }
    entry.state = 'waiting';
    entry.readyAt = readyAt;
    entry.order = this.#order++;
    this.#delayed.add(entry);
    this.#armTimer();
  }

  #makeReady(entry: Entry, now: number): void {
    entry.state = 'ready';
    entry.since = now;
    this.#link(entry);
    this.#waitingWorkers.shift()?.(this.tryTake());
  }

  #link(entry: Entry): void {
    const level = this.#level(entry.priority);
    entry.previous = level.tail;
    entry.next = undefined;
    if (level.tail === undefined) level.head = entry;
    else level.tail.next = entry;
    level.tail = entry;
    this.#ready += 1;
  }

  #unlink(entry: Entry, level: Level): void {
    if (entry.previous === undefined) level.head = entry.next;
    else entry.previous.next = entry.next;
    if (entry.next === undefined) level.tail = entry.previous;
    else entry.next.previous = entry.previous;
    entry.previous = undefined;
    entry.next = undefined;
    this.#ready -= 1;
  }

  /** Returns the list of a priority. A linear search is the fastest lookup for the few priorities in use. */
  #level(priority: number): Level {
    let at = 0;
    for (const level of this.#levels) {
      if (level.priority === priority) return level;
      if (level.priority < priority) break;
      at += 1;
    }
    const level: Level = { priority, head: undefined, tail: undefined };
    this.#levels.splice(at, 0, level);
    return level;
  }

  /** Sets the only timer of the queue to the ready time of the earliest waiting entry. */
  #armTimer(): void {
    const { first } = this.#delayed;
    if (first === undefined || (this.#timer !== undefined && this.#timer.at <= first.readyAt)) return;
    this.#timer?.timer.cancel();
    const timer = this.#clock.after(first.readyAt - this.#clock.monotonic(), () => this.#onTimer());
    this.#timer = { at: first.readyAt, timer };
  }

  /** Makes all due entries ready. */
  #onTimer(): void {
    this.#timer = undefined;
    const now = this.#clock.monotonic();
    for (
      let entry = this.#delayed.first;
      entry !== undefined && entry.readyAt <= now;
      entry = this.#delayed.first
    ) {
      this.#delayed.remove(entry);
      this.#makeReady(entry, now);
    }
    this.#armTimer();
  }
}

function newEntry(key: string, priority: number): Entry {
  return {
    key,
    priority,
    state: 'ready',
    since: 0,
    requeue: undefined,
    readyAt: 0,
    order: 0,
    slot: 0,
    next: undefined,
    previous: undefined,
  };
}
