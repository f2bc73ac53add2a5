import type { World } from '@vmwright/runtime';

/** The right to keep vCenter busy with one thing. */
export interface Turn {
  /** Does nothing when it was given back before. */
  end(): void;
}

export interface TurnsOptions {
  readonly world: Pick<World, 'after'>;
  /** How many at a time. */
  readonly most: number;
  /** Told whose turn it is, of those that were sent away. */
  readonly wake: (key: string) => void;
}

/** For which a turn is kept for somebody who was told, and does not come. */
const KEPT_MS = 5_000;

/**
 * Who may keep vCenter busy: so many at a time, and each that waits in turn, however much each of them wants.
 *
 * Guarantees: never more than `most` at a time but for those that are `resumed`; who was sent away is told, in the order
 * in which they were; who has had a turn and wants another waits behind the others.
 */
export class Turns {
  readonly #options: TurnsOptions;
  readonly #waiting = new Set<string>();
  /** Who was told that it is his turn, and the end of our patience. */
  readonly #called = new Map<string, { cancel(): void }>();
  #taken = 0;

  constructor(options: TurnsOptions) {
    this.#options = options;
  }

  /** A turn; or none as yet, and then `wake` tells. */
  take(key: string): Turn | undefined {
    const call = this.#called.get(key);
    if (call !== undefined) {
      call.cancel();
      this.#called.delete(key);
      return this.#begin();
    }
    if (this.#free > 0 && this.#waiting.size === 0) return this.#begin();
    this.#waiting.add(key);
    this.#call();
    return undefined;
  }

  /** For what is under way already, however many there are. */
  resumed(): Turn {
    return this.#begin();
  }

  /** He wants nothing, now. */
  leave(key: string): void {
    this.#waiting.delete(key);
    this.#called.get(key)?.cancel();
    if (this.#called.delete(key)) this.#call();
  }

  get #free(): number {
    return this.#options.most - this.#taken - this.#called.size;
  }

  #begin(): Turn {
    this.#taken += 1;
    let isOver = false;
    return {
      end: () => {
        if (isOver) return;
        isOver = true;
        this.#taken -= 1;
        this.#call();
      },
    };
  }

  #call(): void {
    const { world, wake } = this.#options;
    for (const key of this.#waiting) {
      if (this.#free <= 0) return;
      this.#waiting.delete(key);
      this.#called.set(
        key,
        world.after(KEPT_MS, () => this.leave(key)),
      );
      wake(key);
    }
  }
}
