import { exponentialMs, unlessAborted, wait } from '@vmwright/core';
import type { PollSchedule } from '../property-watcher/poll-schedule.ts';
import type { VsphereWorld } from '../world.ts';

/**
 * Pause after a response, so that tasks that start or end together are reported together. The pause grows with each
 * response that contains only foreign tasks. These are tasks that are not followed. A busy vCenter reports many of them
 * per second.
 */
const DELAYS = { baseMs: 50, maxMs: 250 };

/**
 * Schedules polls of the recent tasks. There are no polls while no task is followed. They become less frequent after
 * responses that contain only foreign tasks.
 */
export class TaskPollSchedule implements PollSchedule {
  readonly #world: Pick<VsphereWorld, 'after'>;
  readonly #isFollowing: () => boolean;
  /** Consecutive responses without a followed task. */
  #foreignResponses = 0;
  #wake: (() => void) | undefined;

  constructor(world: Pick<VsphereWorld, 'after'>, isFollowing: () => boolean) {
    this.#world = world;
    this.#isFollowing = isFollowing;
  }

  async waitForNextPoll(hadUpdates: boolean, signal: AbortSignal): Promise<void> {
    if (!this.#isFollowing()) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await unlessAborted(promise, signal);
    } else if (!hadUpdates) return;
    await wait(this.#world, exponentialMs(1 + this.#foreignResponses, DELAYS), signal);
  }

  /** Records a response. @param hasFollowedTask whether it contains a followed task */
  received(hasFollowedTask: boolean): void {
    this.#foreignResponses = hasFollowedTask ? 0 : this.#foreignResponses + 1;
  }

  /**
   * Called when a caller begins to follow a task. If the polls had stopped because no task was followed, they continue.
   * Resets the count of responses without a followed task, because the new task may have been in some of them.
   */
  followed(): void {
    this.#foreignResponses = 0;
    this.#wake?.();
    this.#wake = undefined;
  }
}
