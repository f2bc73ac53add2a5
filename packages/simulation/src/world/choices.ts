/**
 * The single source of every delay, fault and ordering in a simulated run. A run is fully determined by its seed, or by
 * the list of numbers that were chosen (the tape). A tape can be replayed and shrunk to the choices that matter for a
 * failure.
 *
 * Choice 0 is always the harmless one: no fault, the shortest delay, first in first out. After the end of a tape, every
 * choice is 0, so the run continues without faults.
 */
export class Choices {
  readonly #next: () => number;
  readonly #kept: number[] | undefined;
  #taken = 0;

  private constructor(next: () => number, keep: boolean) {
    this.#next = next;
    this.#kept = keep ? [] : undefined;
  }

  /** Draws from a pseudo-random generator. @param keep whether to record the choices in `tape` */
  static seeded(seed: number, keep = false): Choices {
    return new Choices(sfc32(seed), keep);
  }

  /** Draws from a tape. For a choice from `n` values, a number of `n` or more on the tape is taken modulo `n`. */
  static replayed(tape: readonly number[], keep = false): Choices {
    let at = 0;
    return new Choices(() => (at < tape.length ? -1 - (tape[at++] ?? 0) : -1), keep);
  }

  /** Number of choices made. */
  get taken(): number {
    return this.#taken;
  }

  /** The choices made so far; empty if choices are not recorded. `replayed(tape)` makes the same choices. */
  get tape(): readonly number[] {
    return this.#kept ?? [];
  }

  /** Returns an integer from 0 up to, but not including, `n`. */
  pick(n: number): number {
    this.#taken += 1;
    const drawn = this.#next();
    // A tape yields a negative number, -1 minus the choice; a seeded generator yields 32 random bits.
    const choice = drawn < 0 ? (-1 - drawn) % n : Math.floor((drawn / 2 ** 32) * n);
    this.#kept?.push(choice);
    return choice;
  }

  /** Returns true with probability 1/n; never if `n` is 0. */
  oneIn(n: number): boolean {
    return n > 0 && this.pick(n) === n - 1;
  }

  one<T>(items: readonly [T, ...T[]]): T {
    return items[this.pick(items.length)] ?? items[0];
  }

  /** Returns a number from 0 up to, but not including, 1. */
  fraction(): number {
    return this.pick(2 ** 32) / 2 ** 32;
  }

  /**
   * Returns a duration in milliseconds. It is usually short, but can be up to `longestMs` with probability 1/12. Some
   * bugs occur only if one operation takes longer than five others together. Short uniform delays would hide them.
   */
  delay(usualMs = 50, longestMs = 12_000): number {
    return 1 + (this.oneIn(12) ? this.pick(longestMs) : this.pick(usualMs));
  }
}

/** The sfc32 generator: small, fast, with a long period for every seed. */
function sfc32(seed: number): () => number {
  let a = seed | 0;
  let b = Math.trunc(seed / 2 ** 32) | 0;
  let c = 0x9e3779b9 | 0;
  let counter = 1;
  const next = () => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  };
  for (let i = 0; i < 12; i++) next(); // decorrelates adjacent seeds
  return next;
}
