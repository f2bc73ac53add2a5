/** Of events about one object: so many at once, then one every so often. As client-go has it. */
const BURST = 25;
const REFILL_MS = 300_000;
/** Objects whose budget is remembered; the one that was longest silent goes first, and starts anew. */
const MAX_OBJECTS = 4_096;

interface Bucket {
  tokens: number;
  refilledAt: number;
}

/** Keeps an object that fails in a loop from filling the API server with events. */
export class EventRateLimiter {
  readonly #buckets = new Map<string, Bucket>();

  /** Whether one more may be sent about this object. */
  tryAcquire(object: string, now: number): boolean {
    const bucket = this.#buckets.get(object) ?? { tokens: BURST, refilledAt: now };
    this.#buckets.delete(object);
    this.#buckets.set(object, bucket); // last: the one most lately heard of
    const refills = Math.floor((now - bucket.refilledAt) / REFILL_MS);
    if (refills > 0) {
      bucket.tokens = Math.min(BURST, bucket.tokens + refills);
      bucket.refilledAt += refills * REFILL_MS;
    }
    for (const oldest of this.#buckets.keys()) {
      if (this.#buckets.size <= MAX_OBJECTS) break;
      this.#buckets.delete(oldest);
    }
    if (bucket.tokens === 0) return false;
    bucket.tokens -= 1;
    return true;
  }
}
