/** Of events about one object: so many at once, then one every so often. As client-go has it. */
const BURST = 25;
const REFILL_MS = 300_000;
/** Objects whose budget is remembered; the one that was longest silent goes first, and starts anew. */
const REMEMBERED = 4_096;

interface Purse {
  left: number;
  filledAt: number;
}

/** Keeps an object that fails in a loop from filling the API server with events. */
export class Budget {
  readonly #purses = new Map<string, Purse>();

  /** Whether one more may be sent about this object. */
  spend(object: string, now: number): boolean {
    const purse = this.#purses.get(object) ?? { left: BURST, filledAt: now };
    this.#purses.delete(object);
    this.#purses.set(object, purse); // last: the one most lately heard of
    const coins = Math.floor((now - purse.filledAt) / REFILL_MS);
    if (coins > 0) {
      purse.left = Math.min(BURST, purse.left + coins);
      purse.filledAt += coins * REFILL_MS;
    }
    for (const oldest of this.#purses.keys()) {
      if (this.#purses.size <= REMEMBERED) break;
      this.#purses.delete(oldest);
    }
    if (purse.left === 0) return false;
    purse.left -= 1;
    return true;
  }
}
