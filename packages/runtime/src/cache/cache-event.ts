import type { KubeObject } from '../kind/object.ts';
import { type Change, parseObject } from './store.ts';

/** A change in the cache. Each read of `object` or `before` parses a new copy that the subscriber may keep. */
export class CacheEvent<T extends KubeObject> {
  readonly type: Change['type'];
  readonly key: string;
  /**
   * True for the events of existing objects when a subscriber subscribes or a namespace becomes visible, and for every
   * event before the cache has synced.
   */
  readonly initial: boolean;
  /** Resource version of `object`, as a number (see `versionOf`). */
  readonly version: number;
  /** Whether `before` is another object of the same name. If so, that object was deleted, without a `removed` event. */
  readonly replaces: boolean;
  readonly #before: string | undefined;
  readonly #after: string | undefined;

  constructor({ type, key, before, after, version, replaces = false }: Change, initial: boolean) {
    this.type = type;
    this.key = key;
    this.initial = initial;
    this.version = version;
    this.replaces = replaces;
    this.#before = before;
    this.#after = after;
  }

  /** The newest state; for a removed object the last known state. */
  get object(): T {
    return parseObject(this.#after ?? this.#before ?? '');
  }

  /** The state before the change; undefined for an added object. */
  get before(): T | undefined {
    return this.#before === undefined ? undefined : parseObject(this.#before);
  }
}

/** Receives the changes of a cache. */
export type Subscriber<T extends KubeObject> = (event: CacheEvent<T>) => void;
