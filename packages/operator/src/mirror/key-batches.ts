import { type Clock, type WorkQueue, wait } from '@vmwright/runtime';

/** Time for which changes are collected before a batch is written. */
const COLLECT_MS = 3;
const MAX_BATCH_ROWS = 2_500;

/**
 * Batches of keys from a queue. If several workers wait, only one of them collects keys, so that all keys that are
 * ready become one batch.
 */
export class KeyBatches {
  readonly #clock: Pick<Clock, 'after'>;
  readonly #queue: WorkQueue;
  #collecting: Promise<unknown> = Promise.resolve();

  constructor(clock: Pick<Clock, 'after'>, queue: WorkQueue) {
    this.#clock = clock;
    this.#queue = queue;
  }

  /**
   * Waits for a key and collects the keys that become ready within a few milliseconds.
   * @returns an empty list when the queue is closed
   */
  next(): Promise<readonly string[]> {
    const collected = this.#collecting.then(() => this.#collect());
    this.#collecting = collected;
    return collected;
  }

  async #collect(): Promise<readonly string[]> {
    const first = await this.#queue.take();
    if (first === undefined) return [];
    await wait(this.#clock, COLLECT_MS);
    const keys = [first.key];
    while (keys.length < MAX_BATCH_ROWS) {
      const item = this.#queue.tryTake();
      if (item === undefined) break;
      keys.push(item.key);
    }
    return keys;
  }
}
