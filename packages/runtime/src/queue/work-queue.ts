import type { BackoffOptions, Clock, Timer } from '@vmwright/core';
import { Backoff } from './backoff.ts';
import { Deadlines, type Waiting } from './deadlines.ts';

/** Of a change that somebody waits for. */
export const NORMAL = 0;
/** Of the first list and of resyncs: a new change never waits behind them. As in controller-runtime. */
export const LOW = -100;

export interface AddOptions {
  /** Higher goes first. @default NORMAL */
  readonly priority?: number;
  /** Not before so many milliseconds from now. @default 0 */
  readonly afterMs?: number;
}

export interface RetryOptions {
  /** @default NORMAL */
  readonly priority?: number;
  /** As a server has asked for. @default 0 */
  readonly atLeastMs?: number | undefined;
}

/** A key whose turn it is. It is nobody else's until `done`. */
export interface Item {
  readonly key: string;
  readonly priority: number;
}

/** Told of what happens, for metrics. */
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

interface Entry extends Item, Waiting {
  state: 'waiting' | 'ready' | 'taken';
  priority: number;
  /** When it became ready, or was taken. */
  since: number;
  /** Added again while taken: where it goes when it is done. */
  again: { priority: number; readyAt: number } | undefined;
  next: Entry | undefined;
  previous: Entry | undefined;
}

/** Ready entries of one priority, in order: a doubly linked list through the entries, so that one can leave the middle. */
interface Level {
  readonly priority: number;
  head: Entry | undefined;
  tail: Entry | undefined;
}

/**
 * The keys that wait to be reconciled.
 *
 * Guarantees:
 * - one entry a key: adding a key that waits changes nothing but to bring it forward (earlier time, higher priority)
 * - a key is with one worker at a time; added meanwhile, it comes again after `done`: no change is lost
 * - among ready keys the highest priority goes first, and within it who became ready first
 * - a key's delay after failures grows with its own failures alone (see `Backoff`)
 */
export class WorkQueue {
  readonly #clock: Clock;
  readonly #backoff: Backoff;
  readonly #observer: QueueObserver | undefined;
  readonly #entries = new Map<string, Entry>();
  readonly #levels: Level[] = [];
  readonly #deadlines = new Deadlines<Entry>();
  readonly #takers: ((item: Item | undefined) => void)[] = [];
  readonly #idle: (() => void)[] = [];
  #timer: { readonly at: number; readonly timer: Timer } | undefined;
  #order = 0;
  #ready = 0;
  #taken = 0;
  #closed = false;

  constructor({ clock, backoff, observer }: WorkQueueOptions) {
    this.#clock = clock;
    this.#backoff = new Backoff(backoff);
    this.#observer = observer;
  }

  /** How many keys are ready and not with a worker. */
  get depth(): number {
    return this.#ready;
  }

  /** How long each key that is with a worker has been there, in milliseconds. */
  get working(): number[] {
    const now = this.#clock.monotonic();
    return [...this.#entries.values()].flatMap((entry) =>
      entry.state === 'taken' ? [now - entry.since] : [],
    );
  }

  add(key: string, { priority = NORMAL, afterMs = 0 }: AddOptions = {}): void {
    const now = this.#clock.monotonic();
    this.#add(key, priority, afterMs > 0 ? now + afterMs : 0, now);
  }

  /** For a key that failed: comes again after its back-off, or later where somebody asks for that. Before `done`. */
  retry(key: string, { priority = NORMAL, atLeastMs = 0 }: RetryOptions = {}): void {
    this.#observer?.retried();
    const now = this.#clock.monotonic();
    this.#add(key, priority, Math.max(this.#backoff.failed(key, now), now + atLeastMs), now);
  }

  /** For a key that succeeded: its next failure is its first. */
  forget(key: string): void {
    this.#backoff.succeeded(key);
  }

  /** How often the key has failed in a row. */
  failures(key: string): number {
    return this.#backoff.failures(key);
  }

  /** The next key, if one is ready. */
  tryTake(): Item | undefined {
    if (this.#closed) return undefined;
    for (const level of this.#levels) {
      const entry = level.head;
      if (entry === undefined) continue;
      this.#unlink(entry, level);
      const now = this.#clock.monotonic();
      this.#observer?.taken(now - entry.since);
      entry.state = 'taken';
      entry.since = now;
      this.#taken += 1;
      return entry;
    }
    return undefined;
  }

  /** The next key, as soon as one is ready; undefined once the queue is closed. */
  take(): Promise<Item | undefined> {
    const item = this.tryTake();
    if (item !== undefined || this.#closed) return Promise.resolve(item);
    return new Promise((resolve) => this.#takers.push(resolve));
  }

  done(key: string): void {
    const entry = this.#entries.get(key);
    if (entry?.state !== 'taken') throw new Error(`${key} is not being worked on`);
    this.#taken -= 1;
    const now = this.#clock.monotonic();
    this.#observer?.finished(now - entry.since);
    const { again } = entry;
    if (again === undefined || this.#closed) {
      this.#entries.delete(key);
    } else {
      entry.again = undefined;
      entry.priority = again.priority;
      this.#place(entry, again.readyAt, now);
    }
    if (this.#closed && this.#taken === 0) for (const idle of this.#idle.splice(0)) idle();
  }

  /** Hands out nothing more and forgets what waits; resolves when all that was handed out is done. */
  close(): Promise<void> {
    this.#closed = true;
    this.#timer?.timer.cancel();
    this.#timer = undefined;
    for (const entry of this.#entries.values()) {
      if (entry.state === 'waiting') this.#deadlines.remove(entry);
      if (entry.state === 'ready') this.#unlink(entry, this.#level(entry.priority));
      if (entry.state !== 'taken') this.#entries.delete(entry.key);
    }
    for (const taker of this.#takers.splice(0)) taker(undefined);
    return this.#taken === 0 ? Promise.resolve() : new Promise((resolve) => this.#idle.push(resolve));
  }

  /** Takes and hands out keys again, once it is closed. */
  open(): void {
    this.#closed = false;
  }

  /** @param readyAt 0 for at once */
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
      case 'taken':
        entry.again =
          entry.again === undefined
            ? { priority, readyAt }
            : {
                priority: Math.max(entry.again.priority, priority),
                readyAt: Math.min(entry.again.readyAt, readyAt),
              };
        break;
      case 'waiting':
        entry.priority = Math.max(entry.priority, priority);
        if (readyAt >= entry.readyAt) break;
        if (readyAt > now) {
          entry.readyAt = readyAt;
          this.#deadlines.sooner(entry);
          this.#arm();
        } else {
          this.#deadlines.remove(entry);
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
    this.#deadlines.add(entry);
    this.#arm();
  }

  #makeReady(entry: Entry, now: number): void {
    entry.state = 'ready';
    entry.since = now;
    this.#link(entry);
    this.#takers.shift()?.(this.tryTake());
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

  /** There are a handful of priorities, so a walk is the fastest look-up. */
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

  /** One timer, for the earliest of those that wait. */
  #arm(): void {
    const { first } = this.#deadlines;
    if (first === undefined || (this.#timer !== undefined && this.#timer.at <= first.readyAt)) return;
    this.#timer?.timer.cancel();
    const timer = this.#clock.after(first.readyAt - this.#clock.monotonic(), () => this.#ring());
    this.#timer = { at: first.readyAt, timer };
  }

  #ring(): void {
    this.#timer = undefined;
    const now = this.#clock.monotonic();
    for (
      let entry = this.#deadlines.first;
      entry !== undefined && entry.readyAt <= now;
      entry = this.#deadlines.first
    ) {
      this.#deadlines.remove(entry);
      this.#makeReady(entry, now);
    }
    this.#arm();
  }
}

function newEntry(key: string, priority: number): Entry {
  return {
    key,
    priority,
    state: 'ready',
    since: 0,
    again: undefined,
    readyAt: 0,
    order: 0,
    slot: 0,
    next: undefined,
    previous: undefined,
  };
}
