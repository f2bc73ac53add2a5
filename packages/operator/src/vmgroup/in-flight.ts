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
 * All state that the controller keeps in memory between reconciles: for each group, the operations in flight, the
 * back-offs, the recorded events and the claimed folder.
 *
 * The state of a group is dropped when its object (UID) is gone or the leadership term ends. A new leader starts
 * without this state, and adopts the vCenter tasks that the status lists.
 */
export class InFlight {
  readonly #options: InFlightOptions;
  readonly #groups = new Map<string, GroupInFlight>();

  constructor(options: InFlightOptions) {
    this.#options = options;
  }

  /**
   * Returns the state of a group. Replaces the state of an earlier term, or of an earlier object with the same name.
   * Resets the back-offs if the spec has changed.
   * @param term fence of the current leadership term
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
