/**
 * Every delay, fault and order of a simulated run, from one source: so one seed is one history, and one list of numbers
 * (a tape) is too, which can be replayed, cut and made smaller until only what matters for a failure is left.
 *
 * Choice 0 is always the harmless one (no fault, the shortest delay, first come first served), so that an exhausted tape
 * goes on without trouble.
 */
export class Choices {
  readonly #next: () => number;
  readonly #kept: number[] | undefined;
  #taken = 0;

  private constructor(next: () => number, keep: boolean) {
    this.#next = next;
    this.#kept = keep ? [] : undefined;
  }

  /** @param keep whether to write down what was chosen, for `tape` */
  static seeded(seed: number, keep = false): Choices {
    return new Choices(sfc32(seed), keep);
  }

  /** What a tape says; numbers that are too large for a choice wrap around. */
  static replayed(tape: readonly number[], keep = false): Choices {
    let at = 0;
    return new Choices(() => (at < tape.length ? -1 - (tape[at++] ?? 0) : -1), keep);
  }

  /** How many choices were made. */
  get taken(): number {
    return this.#taken;
  }

  /** What was chosen so far: `replayed(tape)` makes the same choices. */
  get tape(): readonly number[] {
    return this.#kept ?? [];
  }

  /** From 0 up to, but not including, `n`. */
  pick(n: number): number {
    this.#taken += 1;
    const drawn = this.#next();
    // A tape holds what was chosen (given as -1 - choice), a seed gives 32 bits to choose by.
    const choice = drawn < 0 ? (-1 - drawn) % n : Math.floor((drawn / 2 ** 32) * n);
    this.#kept?.push(choice);
    return choice;
  }

  /** True once in so many times. */
  oneIn(n: number): boolean {
    return n > 0 && this.pick(n) === n - 1;
  }

  one<T>(among: readonly [T, ...T[]]): T {
    return among[this.pick(among.length)] ?? among[0];
  }

  /** From 0 up to, but not including, 1. */
  fraction(): number {
    return this.pick(2 ** 32) / 2 ** 32;
  }

  /**
   * Milliseconds that something takes: mostly few, now and then very many. Short uniform delays hide the bugs that need
   * one thing to take longer than five others.
   */
  delay(usualMs = 50, longestMs = 12_000): number {
    return 1 + (this.oneIn(12) ? this.pick(longestMs) : this.pick(usualMs));
  }
}

/** Small, fast, and with a period that no two seeds share. */
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
  for (let i = 0; i < 12; i++) next(); // seeds that lie side by side have nothing in common any more
  return next;
}
