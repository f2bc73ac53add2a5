/**
 * A signal that aborts when the program is asked to stop (SIGINT, SIGTERM), so that it can end in order; asked a second
 * time, it ends at once.
 */
export function stopSignal(): AbortSignal {
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (stop.signal.aborted) process.exit(1);
      stop.abort(new Error(`the program was asked to stop by ${signal}`));
    });
  }
  return stop.signal;
}
