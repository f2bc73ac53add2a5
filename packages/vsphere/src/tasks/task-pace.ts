import { unlessAborted, wait } from '@vmwright/core';
import type { Pace } from '../feed/pace.ts';
import type { VsphereWorld } from '../world.ts';

/** So that tasks which begin or end together are told together, and one that begins when another ends is as well. */
const GATHER_MS = 50;
/** Between answers about others' tasks alone: a busy vCenter has many a second. */
const LONGEST_MS = 250;

/** When to ask for more of the recent tasks: not while none is followed, and the less the more they are others'. */
export class TaskPace implements Pace {
  readonly #world: Pick<VsphereWorld, 'after'>;
  readonly #isFollowing: () => boolean;
  /** Answers in a row that told of others' tasks alone. */
  #foreign = 0;
  #wake: (() => void) | undefined;

  constructor(world: Pick<VsphereWorld, 'after'>, isFollowing: () => boolean) {
    this.#world = world;
    this.#isFollowing = isFollowing;
  }

  async next(wasTold: boolean, signal: AbortSignal): Promise<void> {
    if (!this.#isFollowing()) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await unlessAborted(promise, signal);
    } else if (!wasTold) return;
    await wait(this.#world, Math.min(GATHER_MS * 2 ** this.#foreign, LONGEST_MS), signal);
  }

  /** An answer has come. @param isOurs whether it tells of one that is followed */
  told(isOurs: boolean): void {
    this.#foreign = isOurs ? 0 : this.#foreign + 1;
  }

  /** One more is followed: what was told of it before, when nobody did, was no other's. */
  follow(): void {
    this.#foreign = 0;
    this.#wake?.();
    this.#wake = undefined;
  }
}
