import { jittered, type Timer, type World, wait } from '@vmwright/core';
import type { Client } from '../client/client.ts';
import { ApiError, ConnectionError, GoneError } from '../client/errors.ts';
import type { Selection } from '../client/options.ts';
import { type Kind, resourceOf } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';

/** Where a reflector puts what it sees. */
interface Sink<T> {
  /** A version of an object; the same or an older one may come again. */
  put(object: T): void;
  /** The watch tells of a deletion; `object` is its last state. */
  remove(object: T): void;
  /** All objects there were at this resource version have been put; those not among `keys` are gone. */
  complete(keys: ReadonlySet<string>, resourceVersion: string): void;
  /** All changes up to this resource version have been told. */
  advance(resourceVersion: string): void;
}

export interface ReflectorOptions<T extends KubeObject> {
  readonly world: World;
  readonly client: Pick<Client, 'watch' | 'pages'>;
  readonly kind: Kind<T>;
  readonly selection: Selection & { readonly metadataOnly?: boolean };
  readonly keyOf: (object: T) => string;
  readonly sink: Sink<T>;
  /** Told of each failure; the reflector goes on. */
  readonly onError: (error: unknown) => void;
}

/** Most servers send a bookmark a minute: of those, longer silence is a dead stream. */
const IDLE_TIMEOUT_MS = 70_000;
const FIRST_DELAY_MS = 800;
const MAX_DELAY_MS = 30_000;
/** After which a failure is a new one, not one more in a row. */
const RESET_BACKOFF_AFTER_MS = 120_000;
const MIN_WATCH_SECONDS = 300;
/** A watch that ends sooner, and has told nothing, is no watch. */
const MIN_WATCH_MS = 1_000;

/**
 * Follows all objects of a kind, for ever.
 *
 * Flow: the objects there are, as a stream that ends in a bookmark (WatchList) or, from servers that do not offer it, in
 * pages; then each change from that resource version on. A watch that ends is taken up where it was; when the server has
 * forgotten that version (410), all objects are fetched again.
 *
 * Guarantees: every object and every deletion reaches the sink in the end, whatever breaks meanwhile; a deletion during
 * an outage by its absence from the next complete list. What comes may be old or come twice: the sink decides by
 * resource version.
 */
export class Reflector<T extends KubeObject> {
  readonly #options: ReflectorOptions<T>;
  #resourceVersion: string | undefined;
  #supportsWatchList = true;
  #delayMs = FIRST_DELAY_MS;
  #wasGone = false;
  #hasBookmarks = false;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
  }

  /** Ends only with the signal. */
  async run(signal: AbortSignal): Promise<void> {
    const { world, onError } = this.#options;
    while (!signal.aborted) {
      const started = world.monotonic();
      try {
        await this.#listAndWatch(signal);
        this.#wasGone = false;
        this.#delayMs = FIRST_DELAY_MS; // the server has ended the watch in good order
      } catch (error) {
        if (signal.aborted) return;
        // Once is how servers forget; again and again is a server that is not well.
        const forgotten = error instanceof GoneError && !this.#wasGone;
        this.#wasGone = error instanceof GoneError;
        if (error instanceof GoneError) this.#resourceVersion = undefined;
        if (!forgotten) onError(error);
        if (world.monotonic() - started > RESET_BACKOFF_AFTER_MS) this.#delayMs = FIRST_DELAY_MS;
        const delayMs = forgotten ? 0 : jittered(world, this.#delayMs);
        this.#delayMs = Math.min(this.#delayMs * 2, MAX_DELAY_MS);
        await wait(world, delayMs, signal).catch(() => undefined);
      }
    }
  }

  async #listAndWatch(signal: AbortSignal): Promise<void> {
    if (this.#resourceVersion !== undefined) return this.#watch(signal, false);
    if (this.#supportsWatchList) {
      try {
        return await this.#watch(signal, true);
      } catch (error) {
        if (!isUnsupported(error)) throw error;
        this.#supportsWatchList = false;
      }
    }
    await this.#list(signal);
    return this.#watch(signal, false);
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { client, kind, selection, keyOf, sink } = this.#options;
    const keys = new Set<string>();
    let resourceVersion = '';
    // Without a resource version: a read of the newest state. "0" is cheaper and may go back in time after a fail-over.
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
    const events = client.watch(kind, {
      ...selection,
      signal: idle.signal,
      timeoutSeconds: Math.round(MIN_WATCH_SECONDS * (1 + world.random())),
      ...(initial ? { sendInitialEvents: true } : { resourceVersion: this.#resourceVersion ?? '' }),
    });
    let listed: Set<string> | undefined = initial ? new Set() : undefined;
    try {
      for await (const event of events) {
        idle.reset();
        if (event.type === 'BOOKMARK') {
          this.#hasBookmarks ||= !event.initialEventsEnd;
          if (listed !== undefined) {
            if (!event.initialEventsEnd) continue; // nothing to resume from before the list is whole
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
      // A server that ends each watch at once would be asked as often as it can answer.
      const isShort = !idle.sawActivity && world.monotonic() - started < MIN_WATCH_MS;
      if (listed !== undefined || isShort)
        throw new ConnectionError(`watching ${resourceOf(kind)}: the server has ended the watch at once`);
    } catch (error) {
      // Of some kinds (Events) there are no bookmarks: the stream may be dead, or have nothing to tell. It is opened anew
      // where it was, which is no failure yet.
      if (idle.hasExpired && listed === undefined && !this.#hasBookmarks) return;
      throw error;
    }
  }

  #advance(resourceVersion: string): void {
    this.#resourceVersion = resourceVersion;
    this.#options.sink.advance(resourceVersion);
  }
}

/** Answers of servers that do not know `sendInitialEvents`, or have it switched off. */
function isUnsupported(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 400 || error.status === 422);
}

/** A signal that aborts when nothing was heard for too long, or with the other. */
class IdleTimeout implements Disposable {
  readonly #controller = new AbortController();
  readonly #world: World;
  readonly #ms: number;
  readonly #outer: AbortSignal;
  readonly #follow = () => this.#controller.abort(this.#outer.reason);
  #lastActivityAt: number;
  #timer: Timer;
  /** Whether it was too long. */
  hasExpired = false;
  /** Whether anything was heard. */
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

  /** Cheap, since it is called for each event: the timer is set anew only when it goes off. */
  reset(): void {
    this.sawActivity = true;
    this.#lastActivityAt = this.#world.monotonic();
  }

  [Symbol.dispose](): void {
    this.#timer.cancel();
    this.#outer.removeEventListener('abort', this.#follow);
    this.#controller.abort(new Error('the watch is over'));
  }

  #check(): void {
    const left = this.#lastActivityAt + this.#ms - this.#world.monotonic();
    if (left > 0) this.#timer = this.#world.after(left, () => this.#check());
    else {
      this.hasExpired = true;
      this.#controller.abort(new Error(`nothing was heard for ${this.#ms / 1000} s`));
    }
  }
}
