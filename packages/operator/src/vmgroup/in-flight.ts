import type { Fence, Logger, Tracer, World } from '@vmwright/runtime';
import { GroupInFlight } from './group-in-flight.ts';
import type { VmGroup } from './resource.ts';

export interface InFlightOptions {
  readonly world: Pick<World, 'monotonic' | 'random' | 'after'>;
  readonly log: Logger;
  /** Records operations as spans. @default no tracing */
  readonly tracer?: Tracer | undefined;
  /** Called with the key of a group when one of its operations has ended. */
  readonly enqueue: (key: string) => void;
}

/**
 * All state that the controller keeps in memory between reconciles: operations in flight, back-offs, events that were
 * recorded, and the claimed folder of each group.
 *
 * The state of a group lasts for as long as the same object (UID) is reconciled in the same leadership term. A restart or
 * a new leader starts without it, and adopts the vCenter tasks that the status lists.
 */
export class InFlight {
  readonly #options: InFlightOptions;
  readonly #groups = new Map<string, GroupInFlight>();

  constructor(options: InFlightOptions) {
    this.#options = options;
  }

  /**
   * Returns the state of a group. Drops the state of an earlier object of the same name or of an earlier term, and
   * resets the back-offs when the spec has changed.
   * @param term fence of the reconcile
   */
  of(key: string, group: VmGroup, term: Fence): GroupInFlight {
    const known = this.#groups.get(key);
    if (known?.isOf(group, term)) {
      known.specObserved(group);
      return known;
    }
    this.drop(key);
    const state = new GroupInFlight({ ...this.#options, key, group, term });
    this.#groups.set(key, state);
    return state;
  }

  /** Returns the state of the group with this key; undefined if no such group was reconciled in this term. */
  find(key: string): GroupInFlight | undefined {
    return this.#groups.get(key);
  }

  /** Returns the operations of all groups, for debugging. */
  list(): readonly object[] {
    return [...this.#groups.values()].flatMap((group) => group.list());
  }

  /** Cancels the operations of a group and drops its state. */
  drop(key: string): void {
    this.#groups.get(key)?.cancel();
    this.#groups.delete(key);
  }

  /**
   * Cancels all operations and drops all state. Called at the start of a term: another replica may have led since the
   * state was gathered.
   */
  clear(): void {
    for (const key of [...this.#groups.keys()]) this.drop(key);
  }
}
