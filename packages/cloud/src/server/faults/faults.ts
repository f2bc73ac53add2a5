import type { Range } from '../simulated/model.ts';

export interface FaultSettings {
  readonly seed: number;
  readonly latencyMs?: Range;
  readonly errorRate?: number;
  readonly errorStatus?: 429 | 500 | 503;
  readonly loseBefore?: number;
  readonly loseAnswersAfterEffect?: number;
  readonly routes?: readonly string[];
}

/** What happens to a request. */
export interface Fate {
  readonly delayMs: number;
  readonly refusedWith: 429 | 500 | 503 | undefined;
  readonly lost: 'before' | 'after' | undefined;
}

export interface FaultReport {
  readonly settings: FaultSettings | null;
  readonly requests: number;
  readonly delayed: number;
  readonly refused: number;
  readonly lostBefore: number;
  readonly lostAfter: number;
}

const NOTHING = { requests: 0, delayed: 0, refused: 0, lostBefore: 0, lostAfter: 0 };

/** Lets requests go wrong, for tests. The n-th request since the setting has the same fate for the same seed. */
export class Faults {
  #settings: FaultSettings | undefined;
  #counts = { ...NOTHING };

  set(settings: FaultSettings): void {
    this.#settings = settings;
    this.#counts = { ...NOTHING };
  }

  clear(): void {
    this.#settings = undefined;
  }

  get report(): FaultReport {
    return { settings: this.#settings ?? null, ...this.#counts };
  }

  fateOf(operation: string): Fate | undefined {
    const settings = this.#settings;
    if (settings === undefined || settings.routes?.includes(operation) === false) return undefined;
    const {
      latencyMs,
      errorRate = 0,
      errorStatus = 503,
      loseBefore = 0,
      loseAnswersAfterEffect = 0,
    } = settings;
    const counts = this.#counts;
    const request = counts.requests++;
    // Four choices for each, whatever is set: a rate that changes does not change which requests the others strike.
    const choice = (which: number) => mixed(settings.seed, request * 4 + which);
    const delayMs = latencyMs === undefined ? 0 : latencyMs.min + (latencyMs.max - latencyMs.min) * choice(0);
    if (delayMs > 0) counts.delayed++;
    const lostBefore = choice(1) < loseBefore;
    const refused = !lostBefore && choice(2) < errorRate;
    const lostAfter = !lostBefore && !refused && choice(3) < loseAnswersAfterEffect;
    if (lostBefore) counts.lostBefore++;
    if (refused) counts.refused++;
    if (lostAfter) counts.lostAfter++;
    return {
      delayMs,
      refusedWith: refused ? errorStatus : undefined,
      lost: lostBefore ? 'before' : lostAfter ? 'after' : undefined,
    };
  }
}

/** From 0 up to, but not including, 1: the n-th number of a seed (splitmix32). */
function mixed(seed: number, n: number): number {
  let z = (seed + Math.imul(n + 1, 0x9e3779b9)) >>> 0;
  z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
  z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
  return ((z ^ (z >>> 15)) >>> 0) / 2 ** 32;
}
