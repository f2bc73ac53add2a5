import { ForbiddenError } from '../client/errors.ts';
import type { KubeObject } from '../kind/object.ts';
import { Store } from './store.ts';

/** Refusals in a row that last: fewer may come from a server that has just started, and not read its roles yet. */
const PERSISTENT_FORBIDDEN = 3;
/** Other failures in a row that last: about a minute of them. */
const PERSISTENT_FAILURES = 7;

/**
 * One of the namespaces that a cache watches (or all, as one), and how it stands with it.
 *
 * One of several is in only when it is let in (`SharedNamespaces`); until then what is listed of it waits aside, where
 * nobody sees it.
 */
export class NamespacePartition<T extends KubeObject> {
  readonly namespace: string | undefined;
  readonly #onPublish: (objects: Iterable<T>) => void;
  #staged: Store<T> | undefined;
  #isListed = false;
  #failures = 0;
  /** What lasts, by its code. */
  #persistentCode: string | undefined;

  /** @param publish is handed all that has waited; without it nothing waits */
  constructor(namespace: string | undefined, publish?: (objects: Iterable<T>) => void) {
    this.namespace = namespace;
    this.#onPublish = publish ?? (() => undefined);
    if (publish !== undefined) this.#staged = new Store();
  }

  /** Where its objects go; undefined once it is in, and they are where all are. */
  get staged(): Store<T> | undefined {
    return this.#staged;
  }

  /** Whether all its objects are where readers see them. */
  get isPublished(): boolean {
    return this.#isListed && this.#staged === undefined;
  }

  /** Whether it could not be listed or watched for so long that nobody is to wait for it. */
  get isFailing(): boolean {
    return this.#persistentCode !== undefined;
  }

  /** Whether it has its list, and is kept current. */
  get isCurrent(): boolean {
    return this.#isListed && !this.isFailing;
  }

  letIn(): void {
    const waiting = this.#staged;
    if (waiting === undefined) return;
    this.#staged = undefined;
    this.#onPublish(objectsIn(waiting));
  }

  listed(): void {
    this.#isListed = true;
  }

  /** @returns whether that is news after failures that lasted */
  succeeded(): boolean {
    const wasFailing = this.isFailing;
    this.#failures = 0;
    this.#persistentCode = undefined;
    return wasFailing;
  }

  /** @returns whether it begins to last, is just that again (which is no news), or may pass */
  failed(error: unknown): 'lasts' | 'again' | 'may pass' {
    this.#failures += 1;
    const isRefusal = error instanceof ForbiddenError;
    const code = codeOf(error);
    if (this.isFailing) return this.#persistentCode === code ? 'again' : 'may pass';
    if (this.#failures < (isRefusal ? PERSISTENT_FORBIDDEN : PERSISTENT_FAILURES))
      return isRefusal ? 'again' : 'may pass';
    this.#persistentCode = code;
    return 'lasts';
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
