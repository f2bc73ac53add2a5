import { nodeWorld, type World } from '@vmwright/core';
import { VirtualClock } from '@vmwright/core/testing';

/**
 * Shortest timeout of the runtime in milliseconds: that of a request. With `random() === 0`, the back-offs of a client
 * and of a cache stay below it.
 */
const SHORTEST_TIMEOUT_MS = 30_000;

/**
 * Returns `nodeWorld` (the real clocks and network) with back-offs divided by `factor`. Timeouts keep their length, so
 * that a slow server or a paused process is never mistaken for a dead one.
 */
export function withShortBackoffs(factor: number): World {
  return {
    ...nodeWorld,
    random: () => 0, // the jitter then halves each back-off, so that the longest one of a cache takes 15 s, not 30 s
    after: (ms, callback) => nodeWorld.after(ms < SHORTEST_TIMEOUT_MS ? ms / factor : ms, callback),
  };
}

/** Returns `nodeWorld` with a monotonic clock that only the test advances, so that no timeout expires by itself. */
export function virtualWorld(): { readonly world: World; readonly clock: VirtualClock } {
  const clock = new VirtualClock();
  const world: World = {
    ...nodeWorld,
    monotonic: () => clock.monotonic(),
    after: (ms, callback) => clock.after(ms, callback),
  };
  return { world, clock };
}

/** Returns `nodeWorld` with back-offs that end only when the test ends them. Timeouts keep their length. */
export function heldBackoffs() {
  const held = new Set<() => void>();
  const world: World = {
    ...nodeWorld,
    random: () => 0,
    after: (ms, callback) => {
      if (ms <= 0 || ms >= SHORTEST_TIMEOUT_MS) return nodeWorld.after(ms, callback);
      const end = () => {
        held.delete(end);
        callback();
      };
      held.add(end);
      return { cancel: () => void held.delete(end) };
    },
  };
  return {
    world,
    /** Number of callers that back off. */
    count: () => held.size,
    end: () => {
      for (const end of [...held]) end();
    },
  };
}
