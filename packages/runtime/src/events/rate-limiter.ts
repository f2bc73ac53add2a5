/** Events per object: a burst of 25, then one every five minutes. The same values as in client-go. */
const BURST = 25;
const REFILL_MS = 300_000;
/**
 * Maximum number of objects to track. Beyond it, the least recently used object is evicted. Its next event finds a full
 * bucket.
 */
const MAX_OBJECTS = 4_096;

interface Bucket {
  tokens: number;
  refilledAt: number;
}

/** Token bucket per object: keeps an object that fails in a loop from flooding the API server with events. */
export class EventRateLimiter {
  readonly #buckets = new Map<string, Bucket>();

  /** Returns whether another event may be sent for this object. */
  tryAcquire(object: string, now: number): boolean {
    const bucket = this.#buckets.get(object) ?? { tokens: BURST, refilledAt: now };
    this.#buckets.delete(object);
    this.#buckets.set(object, bucket); // keeps the map in order of last use
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
