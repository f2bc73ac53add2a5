#!/usr/bin/env -S node --disable-warning=ExperimentalWarning
import { parseArgs } from 'node:util';
import { messageOf, stopSignal, nodeWorld as world } from '@vmwright/runtime';
import { clusterAccess } from './access.ts';
import { NAME, runMirror } from './mirror/program.ts';
import { DEFAULT_CONFIG, mirrorSettings } from './mirror/settings.ts';
import { differenceTable, verify } from './mirror/verify.ts';

const USAGE = `${NAME}: mirrors the status of KubeVirt VMs into the PostgreSQL database of SSVirt

  ${NAME} [run] [--config=<file>]    runs until SIGTERM or SIGINT
  ${NAME} verify [--config=<file>]   compares cluster and table once; exit code 1 if they differ, 2 if it fails

The default of --config is ${DEFAULT_CONFIG}. docs/mirror.md describes the settings.`;

try {
  const { values, positionals } = parseArgs({
    // Go programs accept flags with one dash too.
    args: process.argv.slice(2).map((arg) => arg.replace(/^-(?=config\b|help\b)/, '--')),
    options: { config: { type: 'string' }, help: { type: 'boolean' } },
    allowPositionals: true,
  });
  const [command = 'run', ...more] = positionals;
  if (values.help === true || command === 'help') console.log(USAGE);
  else if (more.length > 0 || (command !== 'run' && command !== 'verify')) {
    console.error(USAGE);
    process.exitCode = 2;
  } else {
    const settings = mirrorSettings(values.config, process.env);
    const access = await clusterAccess(world);
    if (command === 'run') await runMirror(world, access, settings, stopSignal());
    else {
      const found = await verify(world, access, settings, stopSignal());
      console.log(differenceTable(found));
      process.exitCode = found.length === 0 ? 0 : 1;
    }
  }
} catch (error) {
  // Prints no stack trace, because most errors at the start are about settings.
  console.error(`${NAME}: ${messageOf(error)}`);
  process.exit(2);
}
