import type { CacheEvent } from '../cache/cache.ts';
import type { Caches } from '../cache/caches.ts';
import type { Kind } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';
import { wait } from '../world/wait.ts';
import type { World } from '../world/world.ts';
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

/** Asks again and again, at moments that vary by a fifth, and wakes the keys that it is told. */
export function poll(
  world: World,
  everyMs: number,
  ask: (signal: AbortSignal) => Promise<Iterable<string>>,
  onError: (error: unknown) => void,
): Source {
  return async (wake, signal) => {
    while (!signal.aborted) {
      await wait(world, everyMs * (0.8 + 0.4 * world.random()), signal).catch(() => undefined);
      if (signal.aborted) return;
      try {
        for (const key of await ask(signal)) wake(key);
      } catch (error) {
        if (!signal.aborted) onError(error);
      }
    }
  };
}

/** Keys that the program's own code tells, whenever it likes. */
export class Channel {
  readonly #wakers = new Set<(key: string) => void>();

  tell(key: string): void {
    for (const wake of this.#wakers) wake(key);
  }

  readonly source: Source = (wake, signal) =>
    new Promise((resolve) => {
      if (signal.aborted) return resolve();
      this.#wakers.add(wake);
      signal.addEventListener(
        'abort',
        () => {
          this.#wakers.delete(wake);
          resolve();
        },
        { once: true },
      );
    });
}
