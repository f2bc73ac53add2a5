import { jittered, type Timer, type World } from '@vmwright/core';
import type { CacheEvent } from '../cache/cache.ts';
import type { Caches } from '../cache/caches.ts';
import type { Kind } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';
import type { Predicate } from './predicates.ts';

/** Subscribes to changes of other objects, and tells which of ours they concern. */
export interface Watch {
  readonly kind: Kind;
  subscribe(caches: Caches, wake: (key: string, event: CacheEvent<KubeObject>) => void): void;
}

/**
 * Changes of `kind` that concern objects of another.
 * @param to the keys of the objects concerned
 */
export function watch<T extends KubeObject>(
  kind: Kind<T>,
  to: (object: T) => Iterable<string>,
  when: Predicate<T> = () => true,
): Watch {
  return {
    kind,
    subscribe: (caches, wake) => {
      caches.get(kind).subscribe((event) => {
        if (!when(event)) return;
        // Who was concerned before is concerned by not being so any more.
        const keys = new Set(to(event.object));
        if (event.type === 'changed' && event.before !== undefined)
          for (const key of to(event.before)) keys.add(key);
        for (const key of keys) wake(key, event);
      });
    },
  };
}

/** Events from outside the cluster: tells keys until the signal aborts. */
export type Source = (wake: (key: string) => void, signal: AbortSignal) => Promise<void>;

export interface PollerOptions {
  readonly world: World;
  /** Between two times; give or take a fifth. Asked for each pause, where it is a function. */
  readonly everyMs: number | (() => number);
  /** The keys of objects that are to be looked at. */
  readonly poll: (signal: AbortSignal) => Promise<Iterable<string>>;
  readonly onError: (error: unknown) => void;
}

/** Asks the outside at once, and then again and again, and wakes the keys that it is told. */
export class Poller {
  readonly #options: PollerOptions;
  /** Ends the pause under way; undefined while it asks. */
  #pause: { readonly endsAt: number; readonly end: (ms: number) => void } | undefined;
  #nextWithinMs: number | undefined;

  constructor(options: PollerOptions) {
    this.#options = options;
  }

  /** The next time comes within so long, where it would come later: something is known to be on its way. */
  within(ms: number): void {
    const { world } = this.#options;
    if (this.#pause === undefined) this.#nextWithinMs = Math.min(ms, this.#nextWithinMs ?? ms);
    else if (world.monotonic() + ms < this.#pause.endsAt) this.#pause.end(ms);
  }

  readonly source: Source = async (wake, signal) => {
    const { world, everyMs, poll, onError } = this.#options;
    while (!signal.aborted) {
      this.#nextWithinMs = undefined;
      try {
        for (const key of await poll(signal)) wake(key);
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

/** Keys that the program's own code tells, whenever it likes. */
export class Channel {
  readonly #subscribers = new Set<(key: string) => void>();

  enqueue(key: string): void {
    for (const wake of this.#subscribers) wake(key);
  }

  readonly source: Source = (wake, signal) =>
    new Promise((resolve) => {
      if (signal.aborted) return resolve();
      this.#subscribers.add(wake);
      signal.addEventListener(
        'abort',
        () => {
          this.#subscribers.delete(wake);
          resolve();
        },
        { once: true },
      );
    });
}
