#!/usr/bin/env -S node --disable-warning=ExperimentalWarning
/** `vmwright-cloud`: see `--help`. */
import { type Cloud, HELP, StartError, settingsFrom, startCloud } from './server/index.ts';

try {
  const settings = settingsFrom(process.argv.slice(2), process.env);
  if (settings === undefined) process.stdout.write(HELP);
  else {
    // Before the start: who sees that it listens may signal at once, and would end it by that.
    let cloud: Cloud | undefined;
    process.on('SIGHUP', () => cloud?.reload());
    const asked = stopSignal();
    cloud = await startCloud(settings);
    await asked;
    await cloud.close();
  }
} catch (error) {
  if (!(error instanceof StartError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}

/** Resolves when the program is asked to stop; asked twice, it ends at once. */
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
