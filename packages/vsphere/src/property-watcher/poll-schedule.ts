import { JoinedSignal, wait } from '@vmwright/core';
import type { VsphereWorld } from '../world.ts';

/** Decides when a `PropertyWatcher` sends its next request for updates. */
export interface PollSchedule {
  /** Resolves when the next request is due. @param hadUpdates whether the last response contained updates */
  waitForNextPoll(hadUpdates: boolean, signal: AbortSignal): Promise<void>;
}

/** Pauses after each response with updates, so that vCenter reports all changes of the pause in a single response. */
export class BatchingSchedule implements PollSchedule {
  readonly #world: Pick<VsphereWorld, 'after'>;
  readonly #ms: () => number;
  #pause: AbortController | undefined;
  #skipNext = false;

  /** @param ms returns the length of a pause */
  constructor(world: Pick<VsphereWorld, 'after'>, ms: () => number) {
    this.#world = world;
    this.#ms = ms;
  }

  async waitForNextPoll(hadUpdates: boolean, signal: AbortSignal): Promise<void> {
    const isSkipped = this.#skipNext;
    this.#skipNext = false;
    if (!hadUpdates || isSkipped) return;
    const pause = new AbortController();
    this.#pause = pause;
    using joined = new JoinedSignal(signal, pause.signal);
    await wait(this.#world, this.#ms(), joined.signal).catch(() => undefined);
    this.#pause = undefined;
    signal.throwIfAborted();
  }

  /** Ends the current pause. While a request is in flight, skips the pause after its response. */
  flush(): void {
    if (this.#pause === undefined) this.#skipNext = true;
    else this.#pause.abort();
  }
}
