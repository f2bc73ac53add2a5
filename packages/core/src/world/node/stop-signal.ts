/**
 * Returns an abort signal that fires on SIGINT or SIGTERM, for a graceful shutdown. A second signal exits the process
 * immediately with code 1.
 */
export function stopSignal(): AbortSignal {
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (stop.signal.aborted) process.exit(1);
      stop.abort(new Error(`received ${signal}`));
    });
  }
  return stop.signal;
}
