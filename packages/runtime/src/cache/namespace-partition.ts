import { ForbiddenError } from '../client/errors.ts';
import type { KubeObject } from '../kind/object.ts';
import { Store } from './store.ts';

/** Refusals in a row that last: fewer may come from a server that has just started, and not read its roles yet. */
const LASTING_REFUSALS = 3;
/** Other failures in a row that last: about a minute of them. */
const LASTING_FAILURES = 7;

/**
 * One of the namespaces that a cache watches (or all, as one), and how it stands with it.
 *
 * One of several is in only when it is let in (`SharedNamespaces`); until then what is listed of it waits aside, where
 * nobody sees it.
 */
export class NamespacePartition<T extends KubeObject> {
  readonly namespace: string | undefined;
  readonly #letIn: (objects: Iterable<T>) => void;
  #waiting: Store<T> | undefined;
  #isListed = false;
  #failures = 0;
  /** What lasts, by its code. */
  #lasting: string | undefined;

  /** @param letIn is handed all that has waited; without it nothing waits */
  constructor(namespace: string | undefined, letIn?: (objects: Iterable<T>) => void) {
    this.namespace = namespace;
    this.#letIn = letIn ?? (() => undefined);
    if (letIn !== undefined) this.#waiting = new Store();
  }

  /** Where its objects go; undefined once it is in, and they are where all are. */
  get waiting(): Store<T> | undefined {
    return this.#waiting;
  }

  /** Whether all its objects are where readers see them. */
  get isIn(): boolean {
    return this.#isListed && this.#waiting === undefined;
  }

  /** Whether it could not be listed or watched for so long that nobody is to wait for it. */
  get isFailing(): boolean {
    return this.#lasting !== undefined;
  }

  /** Whether it has its list, and is kept current. */
  get isCurrent(): boolean {
    return this.#isListed && !this.isFailing;
  }

  letIn(): void {
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    this.#waiting = undefined;
    this.#letIn(objectsIn(waiting));
  }

  listed(): void {
    this.#isListed = true;
  }

  /** @returns whether that is news after failures that lasted */
  succeeded(): boolean {
    const wasFailing = this.isFailing;
    this.#failures = 0;
    this.#lasting = undefined;
    return wasFailing;
  }

  /** @returns whether it begins to last, is just that again (which is no news), or may pass */
  failed(error: unknown): 'lasts' | 'again' | 'may pass' {
    this.#failures += 1;
    const isRefusal = error instanceof ForbiddenError;
    const code = codeOf(error);
    if (this.isFailing) return this.#lasting === code ? 'again' : 'may pass';
    if (this.#failures < (isRefusal ? LASTING_REFUSALS : LASTING_FAILURES))
      return isRefusal ? 'again' : 'may pass';
    this.#lasting = code;
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
