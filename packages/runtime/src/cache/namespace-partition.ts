import { ForbiddenError } from '../client/errors.ts';
import type { KubeObject } from '../kind/object.ts';
import { Store } from './store.ts';

/**
 * Number of consecutive 403 responses after which the failure is persistent. A server that has not loaded its roles yet
 * may send fewer.
 */
const PERSISTENT_FORBIDDEN = 3;
/**
 * Number of consecutive failures with other errors after which the failure is persistent. With the reflector's
 * back-off, that takes about a minute.
 */
const PERSISTENT_FAILURES = 7;

/**
 * State of a part of a cache: either one of the watched namespaces, or all namespaces together.
 *
 * In a cache of several namespaces, listed objects are staged until `SharedNamespaces` publishes the namespace. Staged
 * objects are invisible to readers.
 */
export class NamespacePartition<T extends KubeObject> {
  readonly namespace: string | undefined;
  readonly #onPublish: (objects: Iterable<T>) => void;
  #staged: Store<T> | undefined;
  #isListed = false;
  #failures = 0;
  /** Error code of the persistent failure, if there is one. */
  #persistentCode: string | undefined;

  /** @param onPublish receives the staged objects; if it is omitted, objects are not staged */
  constructor(namespace: string | undefined, onPublish?: (objects: Iterable<T>) => void) {
    this.namespace = namespace;
    this.#onPublish = onPublish ?? (() => undefined);
    if (onPublish !== undefined) this.#staged = new Store();
  }

  /** Store of the objects that are not published yet; undefined once they are. */
  get staged(): Store<T> | undefined {
    return this.#staged;
  }

  /** Whether the list of the namespace is complete and visible to readers. */
  get isPublished(): boolean {
    return this.#isListed && this.#staged === undefined;
  }

  /** Whether list or watch fails persistently. If so, the cache syncs without this namespace. */
  get isFailing(): boolean {
    return this.#persistentCode !== undefined;
  }

  /** Whether the list of the namespace is complete and its watch works. */
  get isCurrent(): boolean {
    return this.#isListed && !this.isFailing;
  }

  /** Makes the staged objects visible to readers. */
  publish(): void {
    const { staged } = this;
    if (staged === undefined) return;
    this.#staged = undefined;
    this.#onPublish(objectsIn(staged));
  }

  listed(): void {
    this.#isListed = true;
  }

  /** Resets the failure count. @returns whether this ends a persistent failure */
  succeeded(): boolean {
    const wasFailing = this.isFailing;
    this.#failures = 0;
    this.#persistentCode = undefined;
    return wasFailing;
  }

  /**
   * Counts a failure and returns how to report it.
   * - `persistent`: report that list or watch fails persistently. Returned once, for the failure that reaches the
   *   limit.
   * - `repeated`: do not report the failure. It repeats the persistent failure, or is a 403 that may still be
   *   transient.
   * - `transient`: report the failure as an error that is retried.
   */
  failed(error: unknown): 'persistent' | 'repeated' | 'transient' {
    this.#failures += 1;
    const isForbidden = error instanceof ForbiddenError;
    const code = codeOf(error);
    if (this.isFailing) return this.#persistentCode === code ? 'repeated' : 'transient';
    if (this.#failures < (isForbidden ? PERSISTENT_FORBIDDEN : PERSISTENT_FAILURES))
      return isForbidden ? 'repeated' : 'transient';
    this.#persistentCode = code;
    return 'persistent';
  }
}

function* objectsIn<T extends KubeObject>(store: Store<T>): Generator<T, void, undefined> {
  for (const key of store.keys()) {
    const object = store.get(key);
    if (object !== undefined) yield object;
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
