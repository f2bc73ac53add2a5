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

/** Faults to inject into one request. */
export interface Fault {
  readonly delayMs: number;
  /** Status to respond with instead of executing the request. */
  readonly errorStatus: 429 | 500 | 503 | undefined;
  /** If set, no response is sent: the connection is closed `before` or `after` the request is executed. */
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

const NO_COUNTS = { requests: 0, delayed: 0, refused: 0, lostBefore: 0, lostAfter: 0 };

/**
 * Decides which faults to inject, for tests. The faults of a request depend only on the settings and on the number of
 * the request. Requests to the affected routes are numbered from 0 after each `set`.
 */
export class Faults {
  #settings: FaultSettings | undefined;
  #counts = { ...NO_COUNTS };

  set(settings: FaultSettings): void {
    this.#settings = settings;
    this.#counts = { ...NO_COUNTS };
  }

  clear(): void {
    this.#settings = undefined;
  }

  get report(): FaultReport {
    return { settings: this.#settings ?? null, ...this.#counts };
  }

  /** Returns the faults for the next request; undefined if the operation is not affected. */
  next(operation: string): Fault | undefined {
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
    // Each kind of fault has its own random number, so that changing one rate does not change the choices for the
    // others.
    const choice = (which: number) => randomAt(settings.seed, request * 4 + which);
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
      errorStatus: refused ? errorStatus : undefined,
      lost: lostBefore ? 'before' : lostAfter ? 'after' : undefined,
    };
  }
}

/** Returns the n-th random number of a seed, in [0, 1) (splitmix32). */
function randomAt(seed: number, n: number): number {
  let z = (seed + Math.imul(n + 1, 0x9e3779b9)) >>> 0;
  z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
  z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
  return ((z ^ (z >>> 15)) >>> 0) / 2 ** 32;
}
