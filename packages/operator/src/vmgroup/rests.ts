import type { World } from '@vmwright/runtime';

/** How something went wrong, and what that was. */
export interface Failed {
  readonly error: unknown;
  readonly words: string;
}

/** A failure, what rests because of it, and until when on the monotonic clock. */
export interface Failure extends Failed {
  readonly what: Resting;
  readonly until: number;
}

/**
 * What rests: a slot; the changing of its machine, which goes on as it is; clones, which for all of a group fail for the
 * same reasons; looking for their template; and the whole group, which could not even be observed.
 */
export type Resting =
  | { readonly of: 'slot' | 'changing'; readonly slot: number }
  | { readonly of: 'clones' | 'template' | 'group' };

/** For how long: the first time, and at most; each is twice as long as the one before. */
export interface Pauses {
  readonly firstMs: number;
  readonly longestMs: number;
}

const USUAL: Pauses = { firstMs: 1_000, longestMs: 60_000 };
/** A failure is forgotten this long after its back-off ended, unless it is being retried. */
const REMEMBERED_MS = 60_000;

/** After which something is left alone for a while. */
interface Rest {
  readonly what: Resting;
  /** Undefined where nothing went wrong, and yet it should not be done all the time. */
  readonly failed: Failed | undefined;
  /** In a row. */
  readonly count: number;
  readonly until: number;
  /** It is over, and what it was about is tried again: how that ends is not known yet. */
  readonly isTried?: boolean;
}

/** What is left alone for a while, of each group. */
export class Rests {
  readonly #world: Pick<World, 'monotonic' | 'random'>;
  /** The newest last. */
  readonly #rests = new Map<string, readonly Rest[]>();

  constructor(world: Pick<World, 'monotonic' | 'random'>) {
    this.#world = world;
  }

  /**
   * @param failed undefined where nothing went wrong
   * @returns for how many milliseconds it rests
   */
  begin(group: string, what: Resting, failed: Failed | undefined, pauses = USUAL): number {
    const before = this.#all(group).find((rest) => isSame(rest.what, what));
    const isSameAgain = (before?.failed === undefined) === (failed === undefined);
    const count = isSameAgain ? (before?.count ?? 0) + 1 : 1;
    const ms = Math.min(pauses.firstMs * 2 ** (count - 1), pauses.longestMs);
    const restMs = ms * (0.5 + this.#world.random());
    const until = this.#world.monotonic() + restMs;
    const rest: Rest = { what, failed, count, until };
    const all = this.#all(group);
    // In the place of the one before: of several failures that are retried in turn, the same one stays the newest.
    const isRepeated = before !== undefined && isSameAgain;
    const others = isRepeated ? all : all.filter((each) => each !== before);
    this.#rests.set(
      group,
      isRepeated ? others.map((each) => (each === before ? rest : each)) : [...others, rest],
    );
    return restMs;
  }

  /** Whether it is being tried again: what went wrong before counts until that has ended, however long it takes. */
  trying(group: string, what: Resting, isTried: boolean): void {
    const rests = this.#all(group).map((rest) => (isSame(rest.what, what) ? { ...rest, isTried } : rest));
    if (rests.length > 0) this.#rests.set(group, rests);
  }

  /** It has succeeded. */
  end(group: string, what: Resting): void {
    this.#keep(group, (rest) => !isSame(rest.what, what));
  }

  isAtRest(group: string, of: Resting['of']): boolean {
    return this.#current(group).some(({ what }) => what.of === of);
  }

  slots(group: string, of: 'slot' | 'changing'): ReadonlySet<number> {
    return new Set(this.#current(group).flatMap(({ what }) => (what.of === of ? what.slot : [])));
  }

  /** When those end that have not yet, on the monotonic clock. */
  ends(group: string): readonly number[] {
    return this.#current(group).map(({ until }) => until);
  }

  /** All that failed and have not succeeded since; the newest cause last. */
  failuresOf(group: string): readonly Failure[] {
    const now = this.#world.monotonic();
    this.#keep(group, ({ until, isTried }) => isTried === true || now - until <= REMEMBERED_MS);
    return this.#all(group).flatMap(({ what, failed, until }) => (failed ? { ...failed, what, until } : []));
  }

  /** All but those of one sort, if that is named. */
  forget(group: string, but?: Resting['of']): void {
    this.#keep(group, ({ what }) => what.of === but);
  }

  clear(): void {
    this.#rests.clear();
  }

  #all(group: string): readonly Rest[] {
    return this.#rests.get(group) ?? [];
  }

  #current(group: string): readonly Rest[] {
    return this.#all(group).filter(({ until }) => until > this.#world.monotonic());
  }

  #keep(group: string, is: (rest: Rest) => boolean): void {
    const kept = this.#all(group).filter(is);
    if (kept.length === 0) this.#rests.delete(group);
    else this.#rests.set(group, kept);
  }
}

function isSame(a: Resting, b: Resting): boolean {
  return a.of === b.of && ('slot' in a ? a.slot : undefined) === ('slot' in b ? b.slot : undefined);
}
