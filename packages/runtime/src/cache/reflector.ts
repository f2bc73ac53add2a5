import { jittered, type Timer, type World, wait } from '@vmwright/core';
import type { Client } from '../client/client.ts';
import { ApiError, ConnectionError, GoneError, NotFoundError } from '../client/errors.ts';
import type { Selection } from '../client/options.ts';
import { type Kind, resourceOf } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';

/** Receives what a reflector lists and watches. */
interface Sink<T> {
  /** Stores a version of an object. A later call may pass the same or an older version of it. */
  put(object: T): void;
  /** Removes an object that the watch reported as deleted; `object` is its last state. */
  remove(object: T): void;
  /**
   * Called at the end of a list: the objects of `keys` have been put, and no others existed at this resource version.
   */
  complete(keys: ReadonlySet<string>, resourceVersion: string): void;
  /** Reports that every change up to this resource version was delivered. */
  advance(resourceVersion: string): void;
}

export interface ReflectorOptions<T extends KubeObject> {
  readonly world: World;
  readonly client: Pick<Client, 'watch' | 'pages'>;
  readonly kind: Kind<T>;
  readonly selection: Selection & { readonly metadataOnly?: boolean };
  /** See `CacheOptions`. @default 'watch' */
  readonly initialList?: 'watch' | 'pages';
  readonly keyOf: (object: T) => string;
  readonly sink: Sink<T>;
  /**
   * Called with each failure, before the retry. A single 410 response, or the first of several in a row, is not
   * reported.
   */
  readonly onError: (error: unknown) => void;
}

/** Time without an event after which a watch counts as dead. API servers send a bookmark about once a minute. */
const IDLE_TIMEOUT_MS = 70_000;
const FIRST_DELAY_MS = 800;
const MAX_DELAY_MS = 30_000;
/** A watch that fails after more than this time resets the back-off to the shortest delay. */
const RESET_BACKOFF_AFTER_MS = 120_000;
const MIN_WATCH_SECONDS = 300;
/** A watch that ends without an event in less than this time counts as failed. */
const MIN_WATCH_MS = 1_000;

/**
 * Lists and watches the objects of a kind until it is stopped.
 *
 * Flow: lists the existing objects, then watches from the resource version of the list. The list is a stream that ends
 * with a bookmark (WatchList), or pages if the options ask for them or the server does not support WatchList. A watch
 * that ends is resumed at its last resource version. If the server no longer has that version (410 Gone), the reflector
 * lists again.
 *
 * Guarantees: every object and every deletion eventually reaches the sink, whatever fails in between. If the watch
 * missed a deletion, the next complete list reveals it. Objects may arrive late or twice, so the sink has to ignore
 * versions that are not newer than its own.
 */
export class Reflector<T extends KubeObject> {
  readonly #options: ReflectorOptions<T>;
  #resourceVersion: string | undefined;
  #usesWatchList: boolean;
  #delayMs = FIRST_DELAY_MS;
  #wasGone = false;
  #hasBookmarks = false;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#usesWatchList = options.initialList !== 'pages';
  }

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { world, onError } = this.#options;
    while (!signal.aborted) {
      const started = world.monotonic();
      try {
        await this.#listAndWatch(signal);
        this.#wasGone = false;
        this.#delayMs = FIRST_DELAY_MS; // the server ended the watch without an error
      } catch (error) {
        if (signal.aborted) return;
        // A single 410 is normal and causes a new list immediately; consecutive 410 responses are a server error.
        const isFirstGone = error instanceof GoneError && !this.#wasGone;
        this.#wasGone = error instanceof GoneError;
        // A 404 means that the CRD was removed with all its objects, so the resource version is obsolete: list from the
        // start.
        if (error instanceof GoneError || error instanceof NotFoundError) this.#resourceVersion = undefined;
        if (!isFirstGone) onError(error);
        if (world.monotonic() - started > RESET_BACKOFF_AFTER_MS) this.#delayMs = FIRST_DELAY_MS;
        const delayMs = isFirstGone ? 0 : jittered(world, this.#delayMs);
        this.#delayMs = Math.min(this.#delayMs * 2, MAX_DELAY_MS);
        await wait(world, delayMs, signal).catch(() => undefined);
      }
    }
  }

  async #listAndWatch(signal: AbortSignal): Promise<void> {
    if (this.#resourceVersion !== undefined) return this.#watch(signal, false);
    if (this.#usesWatchList) {
      try {
        return await this.#watch(signal, true);
      } catch (error) {
        if (!isUnsupported(error)) throw error;
        this.#usesWatchList = false;
      }
    }
    await this.#list(signal);
    return this.#watch(signal, false);
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { client, kind, selection, keyOf, sink } = this.#options;
    const keys = new Set<string>();
    let resourceVersion = '';
    // No resource version means a consistent read. "0" is cheaper but may return an older state after a failover.
    for await (const page of client.pages(kind, { ...selection, signal })) {
      for (const object of page.items) {
        keys.add(keyOf(object));
        sink.put(object);
      }
      resourceVersion = page.resourceVersion;
    }
    sink.complete(keys, resourceVersion);
    this.#advance(resourceVersion);
  }

  async #watch(signal: AbortSignal, initial: boolean): Promise<void> {
    const { world, client, kind, selection, keyOf, sink } = this.#options;
    const started = world.monotonic();
    using idle = new IdleTimeout(world, IDLE_TIMEOUT_MS, signal);
    let listed: Set<string> | undefined = initial ? new Set() : undefined;
    const events = client.watch(kind, {
      ...selection,
      signal: idle.signal,
      timeoutSeconds: Math.round(MIN_WATCH_SECONDS * (1 + world.random())),
      ...(initial ? { sendInitialEvents: true } : { resourceVersion: this.#resourceVersion ?? '' }),
    });
    try {
      for await (const event of events) {
        idle.reset();
        if (event.type === 'BOOKMARK') {
          this.#hasBookmarks ||= !event.initialEventsEnd;
          if (listed !== undefined) {
            if (!event.initialEventsEnd) continue; // not a version to resume at, because the list is incomplete
            sink.complete(listed, event.resourceVersion);
            listed = undefined;
          }
          this.#advance(event.resourceVersion);
          continue;
        }
        const { object } = event;
        if (event.type === 'DELETED') {
          listed?.delete(keyOf(object));
          sink.remove(object);
        } else {
          listed?.add(keyOf(object));
          sink.put(object);
        }
        if (listed === undefined) this.#advance(object.metadata.resourceVersion ?? '');
      }
      // Without this error, a server that ends every watch immediately would be polled in a tight loop.
      const isShort = !idle.sawActivity && world.monotonic() - started < MIN_WATCH_MS;
      if (listed !== undefined || isShort)
        throw new ConnectionError(`watch of ${resourceOf(kind)}: the server ended the watch immediately`);
    } catch (error) {
      // Some kinds (Events) have no bookmarks, so an idle stream may be dead or just quiet: it is resumed, not
      // reported.
      if (idle.hasExpired && listed === undefined && !this.#hasBookmarks) return;
      throw error;
    }
  }

  #advance(resourceVersion: string): void {
    this.#resourceVersion = resourceVersion;
    this.#options.sink.advance(resourceVersion);
  }
}

/** Whether the server does not know `sendInitialEvents`, or has the WatchList feature disabled. */
function isUnsupported(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 400 || error.status === 422);
}

/** A signal that aborts after a time without activity, or when the outer signal aborts. */
class IdleTimeout implements Disposable {
  readonly #controller = new AbortController();
  readonly #world: World;
  readonly #ms: number;
  readonly #outer: AbortSignal;
  readonly #follow = () => this.#controller.abort(this.#outer.reason);
  #lastActivityAt: number;
  #timer: Timer;
  hasExpired = false;
  sawActivity = false;

  constructor(world: World, ms: number, outer: AbortSignal) {
    this.#world = world;
    this.#ms = ms;
    this.#outer = outer;
    this.#lastActivityAt = world.monotonic();
    this.#timer = world.after(ms, () => this.#check());
    outer.addEventListener('abort', this.#follow, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /**
   * Restarts the timeout. Called for each event, so it only stores the time; the timer is rescheduled when it fires.
   */
  reset(): void {
    this.sawActivity = true;
    this.#lastActivityAt = this.#world.monotonic();
  }

  [Symbol.dispose](): void {
    this.#timer.cancel();
    this.#outer.removeEventListener('abort', this.#follow);
    this.#controller.abort(new Error('the watch has ended'));
  }

  #check(): void {
    const left = this.#lastActivityAt + this.#ms - this.#world.monotonic();
    if (left > 0) this.#timer = this.#world.after(left, () => this.#check());
    else {
      this.hasExpired = true;
      this.#controller.abort(new Error(`no event for ${this.#ms / 1000} s`));
    }
  }
}
