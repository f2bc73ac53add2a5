#!/usr/bin/env -S node --disable-warning=ExperimentalWarning
/** Entry point of `vmwright-cloud`; see `--help`. */
import { type Cloud, HELP, parseSettings, StartError, startCloud } from './server/index.ts';

try {
  const settings = parseSettings(process.argv.slice(2), process.env);
  if (settings === undefined) process.stdout.write(HELP);
  else {
    // Handlers are installed before the server listens. Otherwise a signal right after the start would kill the
    // process.
    let cloud: Cloud | undefined;
    process.on('SIGHUP', () => cloud?.reload());
    const stopRequested = stopSignal();
    cloud = await startCloud(settings);
    await stopRequested;
    await cloud.close();
  }
} catch (error) {
  if (!(error instanceof StartError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}

/** Resolves on the first SIGINT or SIGTERM. A second signal exits the process immediately. */
function stopSignal(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let signals = 0;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      signals += 1;
      if (signals > 1) process.exit(1);
      resolve();
    });
  }
  return promise;
}
