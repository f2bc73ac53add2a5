import { jittered, type Timer, type World } from '@vmwright/core';
import type { CacheEvent } from '../cache/cache-event.ts';
import type { Caches } from '../cache/caches.ts';
import type { Kind } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';
import type { Predicate } from './predicates.ts';

/** A watch of another kind that enqueues objects of a controller; created by `watch`. */
export interface Watch {
  readonly kind: Kind;
  subscribe(caches: Caches, enqueue: (key: string, event: CacheEvent<KubeObject>) => void): void;
}

/**
 * Watches another kind and enqueues the objects that its changes affect.
 * @param map returns the keys of the affected objects
 * @param predicate selects the changes that enqueue objects. @default all
 */
export function watch<T extends KubeObject>(
  kind: Kind<T>,
  map: (object: T) => Iterable<string>,
  predicate: Predicate<T> = () => true,
): Watch {
  return {
    kind,
    subscribe: (caches, enqueue) => {
      caches.get(kind).subscribe((event) => {
        if (!predicate(event)) return;
        // Also enqueues the keys that the old object mapped to.
        const keys = new Set(map(event.object));
        if (event.type === 'changed' && event.before !== undefined)
          for (const key of map(event.before)) keys.add(key);
        for (const key of keys) enqueue(key, event);
      });
    },
  };
}

/** Source of events from outside the cluster: enqueues keys until the signal aborts. Restarted if it fails. */
export type Source = (enqueue: (key: string) => void, signal: AbortSignal) => Promise<void>;

/** Options of a poller. */
export interface PollerOptions {
  readonly world: World;
  /**
   * Milliseconds between two polls, with 20 % jitter. A function is called before each pause, and returns the length of
   * that pause.
   */
  readonly everyMs: number | (() => number);
  /** Returns the keys of the objects to reconcile. */
  readonly poll: (signal: AbortSignal) => Promise<Iterable<string>>;
  readonly onError: (error: unknown) => void;
}

/** Polls a backend, immediately and then periodically, and enqueues the keys that `poll` returns. */
export class Poller {
  readonly #options: PollerOptions;
  /** The current pause; undefined during a poll. */
  #pause: { readonly endsAt: number; readonly end: (ms: number) => void } | undefined;
  #nextWithinMs: number | undefined;

  constructor(options: PollerOptions) {
    this.#options = options;
  }

  /** Brings the next poll forward to at most `ms` milliseconds from now. Call it when a change is expected soon. */
  within(ms: number): void {
    const { world } = this.#options;
    if (this.#pause === undefined) this.#nextWithinMs = Math.min(ms, this.#nextWithinMs ?? ms);
    else if (world.monotonic() + ms < this.#pause.endsAt) this.#pause.end(ms);
  }

  /** The source to pass to a controller. */
  readonly source: Source = async (enqueue, signal) => {
    const { world, everyMs, poll, onError } = this.#options;
    while (!signal.aborted) {
      this.#nextWithinMs = undefined;
      try {
        for (const key of await poll(signal)) enqueue(key);
      } catch (error) {
        if (!signal.aborted) onError(error);
      }
      const ms = typeof everyMs === 'number' ? everyMs : everyMs();
      await this.#wait(Math.min(jittered(world, ms, 0.2), this.#nextWithinMs ?? ms * 2), signal);
    }
  };

  async #wait(ms: number, signal: AbortSignal): Promise<void> {
    const { world } = this.#options;
    const { promise, resolve } = Promise.withResolvers<void>();
    let timer: Timer | undefined;
    const end = (after: number) => {
      timer?.cancel();
      timer = world.after(after, resolve);
      this.#pause = { endsAt: world.monotonic() + after, end };
    };
    end(ms);
    const stop = () => resolve();
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    await promise;
    signal.removeEventListener('abort', stop);
    timer?.cancel();
    this.#pause = undefined;
  }
}

/** Source that enqueues the keys that other code of the program passes to `enqueue`. */
export class Channel {
  readonly #subscribers = new Set<(key: string) => void>();

  /** Enqueues a key in every running controller that uses this channel. Drops the key if no such controller runs. */
  enqueue(key: string): void {
    for (const subscriber of this.#subscribers) subscriber(key);
  }

  /** The source to pass to a controller. */
  readonly source: Source = (enqueue, signal) =>
    new Promise((resolve) => {
      if (signal.aborted) return resolve();
      this.#subscribers.add(enqueue);
      signal.addEventListener(
        'abort',
        () => {
          this.#subscribers.delete(enqueue);
          resolve();
        },
        { once: true },
      );
    });
}
