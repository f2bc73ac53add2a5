import { JoinedSignal, wait } from '@vmwright/core';
import type { VsphereWorld } from '../world.ts';

/** When a feed asks for more. */
export interface Pace {
  /** Resolves once it shall. @param wasTold whether the last answer had something to tell */
  next(wasTold: boolean, signal: AbortSignal): Promise<void>;
}

/** A pause after each answer, so that what comes then is told together. */
export class Pause implements Pace {
  readonly #world: Pick<VsphereWorld, 'after'>;
  readonly #ms: () => number;
  #end: AbortController | undefined;
  #isHurried = false;

  constructor(world: Pick<VsphereWorld, 'after'>, ms: () => number) {
    this.#world = world;
    this.#ms = ms;
  }

  async next(wasTold: boolean, signal: AbortSignal): Promise<void> {
    const isHurried = this.#isHurried;
    this.#isHurried = false;
    if (!wasTold || isHurried) return;
    const end = new AbortController();
    this.#end = end;
    using joined = new JoinedSignal(signal, end.signal);
    await wait(this.#world, this.#ms(), joined.signal).catch(() => undefined);
    this.#end = undefined;
    signal.throwIfAborted();
  }

  /** Something was done that is worth a look: without this pause, or the next one where it waits for an answer. */
  hurry(): void {
    if (this.#end === undefined) this.#isHurried = true;
    else this.#end.abort();
  }
}
