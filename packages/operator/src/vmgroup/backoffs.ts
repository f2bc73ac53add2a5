import { type BackoffOptions, backoffMs, type World } from '@vmwright/runtime';

/** A failed attempt. */
export interface Failure {
  readonly error: unknown;
  /** Description of the attempt for messages, such as "powering on machine x". */
  readonly attempt: string;
}

/** A failure and the back-off that it caused. `until` is the end of the back-off on the monotonic clock. */
export interface BackingOff extends Failure {
  readonly target: BackoffTarget;
  readonly until: number;
}

/**
 * Target of a back-off. A slot is the number of a machine in the group.
 * - `slot`: all operations on the machine of a slot
 * - `size`: only changes of the size of the machine of a slot
 * - `clones`: all clones of the group, because they fail for the same reasons
 * - `template`: the lookup of the template
 * - `group`: the whole group, when it could not be observed
 */
export type BackoffTarget =
  | { readonly of: 'slot' | 'size'; readonly slot: number }
  | { readonly of: 'clones' | 'template' | 'group' };

const DEFAULT_BACKOFF: BackoffOptions = { baseMs: 1_000, maxMs: 60_000 };
/**
 * Time for which a failure is still reported after its back-off has ended. A failure is reported for longer if its
 * retry is in flight.
 */
const RETAINED_MS = 60_000;

interface Entry {
  readonly target: BackoffTarget;
  /** Undefined if the attempt succeeded and only its repetition is delayed. */
  readonly failure: Failure | undefined;
  /** Number of consecutive attempts. */
  readonly count: number;
  readonly until: number;
  readonly isRetrying?: boolean;
}

/** The back-offs of one group. */
export class Backoffs {
  readonly #world: Pick<World, 'monotonic' | 'random'>;
  /** One entry per target, in the order in which the targets first failed. */
  #entries: readonly Entry[] = [];

  constructor(world: Pick<World, 'monotonic' | 'random'>) {
    this.#world = world;
  }

  /**
   * Starts or prolongs a back-off.
   * @param failure undefined if the attempt succeeded and only its repetition is delayed
   * @returns duration of the back-off in milliseconds
   */
  start(target: BackoffTarget, failure: Failure | undefined, options = DEFAULT_BACKOFF): number {
    const before = this.#entries.find((entry) => isSame(entry.target, target));
    const isRepeated = before !== undefined && (before.failure === undefined) === (failure === undefined);
    const count = isRepeated ? before.count + 1 : 1;
    const durationMs = backoffMs(this.#world, count, options);
    const entry: Entry = { target, failure, count, until: this.#world.monotonic() + durationMs };
    // The status reports the failure of the last entry. So an entry keeps its position when its target fails again.
    // Otherwise, targets that fail in turn would replace each other in the status.
    this.#entries = isRepeated
      ? this.#entries.map((each) => (each === before ? entry : each))
      : [...this.#entries.filter((each) => each !== before), entry];
    return durationMs;
  }

  /** Records whether a retry is in flight. Until the retry ends, the failure is retained. */
  setRetrying(target: BackoffTarget, isRetrying: boolean): void {
    this.#entries = this.#entries.map((entry) =>
      isSame(entry.target, target) ? { ...entry, isRetrying } : entry,
    );
  }

  /** Ends the back-off of a target, after an operation on the target has succeeded. */
  reset(target: BackoffTarget): void {
    this.#entries = this.#entries.filter((entry) => !isSame(entry.target, target));
  }

  /** Ends all back-offs. @param except type of targets whose back-offs continue */
  resetAll(except?: BackoffTarget['of']): void {
    this.#entries = this.#entries.filter(({ target }) => target.of === except);
  }

  isActive(of: BackoffTarget['of']): boolean {
    return this.#active().some(({ target }) => target.of === of);
  }

  /** Returns the slots that back off. */
  slots(of: 'slot' | 'size'): ReadonlySet<number> {
    return new Set(this.#active().flatMap(({ target }) => (target.of === of ? target.slot : [])));
  }

  /** Returns the ends of the active back-offs, on the monotonic clock. */
  ends(): readonly number[] {
    return this.#active().map(({ until }) => until);
  }

  /**
   * Returns the latest failure of each target, in the order in which the targets first failed. Omits targets that have
   * succeeded since then. Drops failures `RETAINED_MS` after the end of their back-off.
   */
  failures(): readonly BackingOff[] {
    const now = this.#world.monotonic();
    this.#entries = this.#entries.filter(
      ({ until, isRetrying }) => isRetrying === true || now - until <= RETAINED_MS,
    );
    return this.#entries.flatMap(({ target, failure, until }) =>
      failure ? { ...failure, target, until } : [],
    );
  }

  #active(): readonly Entry[] {
    return this.#entries.filter(({ until }) => until > this.#world.monotonic());
  }
}

function isSame(a: BackoffTarget, b: BackoffTarget): boolean {
  return a.of === b.of && ('slot' in a ? a.slot : undefined) === ('slot' in b ? b.slot : undefined);
}
