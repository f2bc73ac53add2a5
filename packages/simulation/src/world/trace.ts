/** One entry of a readable trace. */
export interface StoryLine {
  /** Virtual milliseconds since the start of the simulation. */
  readonly at: number;
  /** The process or server that the entry is about. */
  readonly who: string;
  readonly what: string;
}

/** Trace of a run: a running hash, which shows that two runs were identical, and optionally readable entries. */
export class Trace {
  readonly #story: StoryLine[] | undefined;
  #high = 0x811c9dc5;
  #low = 0x1b873593;
  #length = 0;

  constructor(story = false) {
    this.#story = story ? [] : undefined;
  }

  note(at: number, who: string, what: string): void {
    this.#length += 1;
    const micros = Math.round(at * 1_000);
    this.#mix(micros | 0);
    this.#mix(Math.trunc(micros / 2 ** 32));
    this.#mixText(who);
    this.#mixText(what);
    this.#story?.push({ at, who, what });
  }

  /** Hash of all entries in order. */
  get hash(): string {
    const hex = (word: number) => (word >>> 0).toString(16).padStart(8, '0');
    return hex(this.#high) + hex(this.#low);
  }

  get length(): number {
    return this.#length;
  }

  get story(): readonly StoryLine[] {
    return this.#story ?? [];
  }

  #mix(word: number): void {
    this.#high = Math.imul(this.#high ^ word, 0x01000193);
    this.#low = Math.imul(this.#low ^ ((word << 13) | (word >>> 19)), 0x5bd1e995) ^ (this.#high >>> 15);
  }

  /** Applies `#mix` to each character. Inlined for speed, because most of a trace is text. */
  #mixText(text: string): void {
    let high = this.#high;
    let low = this.#low;
    for (let i = 0; i < text.length; i++) {
      const word = text.charCodeAt(i);
      high = Math.imul(high ^ word, 0x01000193);
      low = Math.imul(low ^ (word << 13), 0x5bd1e995) ^ (high >>> 15);
    }
    this.#high = high;
    this.#low = low;
    this.#mix(text.length);
  }
}

/** Formats a trace for reading, one line per entry. */
export function formatStory(story: readonly StoryLine[]): string {
  return story
    .map(({ at, who, what }) => `${(at / 1_000).toFixed(3).padStart(10)} s  ${who.padEnd(12)} ${what}`)
    .join('\n');
}
