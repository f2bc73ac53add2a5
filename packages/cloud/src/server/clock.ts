/** Time for the server: the machine's own, or one that tests own. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls back once, after at least so many milliseconds. */
  after(ms: number, callback: () => void): { cancel(): void };
}

/** setTimeout takes a longer delay for none at all. */
const LONGEST_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  after: (ms, callback) => {
    const timer = setTimeout(callback, Math.min(Math.max(ms, 0), LONGEST_MS));
    return { cancel: () => clearTimeout(timer) };
  },
};

/** Resolves after so many milliseconds, or rejects with the signal's reason as soon as it aborts. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const abort = () => {
      timer.cancel();
      reject(signal.reason);
    };
    const timer = clock.after(ms, () => {
      signal.removeEventListener('abort', abort);
      resolve();
    });
    signal.addEventListener('abort', abort, { once: true });
  });
}
