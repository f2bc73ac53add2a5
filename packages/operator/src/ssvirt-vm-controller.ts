#!/usr/bin/env -S node --disable-warning=ExperimentalWarning
import { parseArgs } from 'node:util';
import { messageOf, stopSignal, nodeWorld as world } from '@vmwright/runtime';
import { clusterAccess } from './access.ts';
import { NAME, runMirror } from './mirror/program.ts';
import { DEFAULT_CONFIG, mirrorSettings } from './mirror/settings.ts';
import { differenceTable, verify } from './mirror/verify.ts';
import { parseTime } from './settings/values.ts';

const USAGE = `${NAME}: mirrors the status of KubeVirt VMs into the PostgreSQL database of SSVirt

  ${NAME} [run] [--config=<file>]    runs until SIGTERM or SIGINT
  ${NAME} verify [--config=<file>] [--wait=<time>]
                                     compares cluster and table; exit code 1 if they differ, 2 if it fails.
                                     --wait repeats the comparison until they agree, at most for that time

The default of --config is ${DEFAULT_CONFIG}. docs/mirror.md describes the settings.`;

try {
  const { values, positionals } = parseArgs({
    // Go programs accept flags with one dash too.
    args: process.argv.slice(2).map((arg) => arg.replace(/^-(?=config\b|wait\b|help\b)/, '--')),
    options: {
      config: { type: 'string' },
      wait: { type: 'string', default: '0s' },
      help: { type: 'boolean' },
    },
    allowPositionals: true,
  });
  const [command = 'run', ...more] = positionals;
  if (values.help === true || command === 'help') console.log(USAGE);
  else if (more.length > 0 || (command !== 'run' && command !== 'verify')) {
    console.error(USAGE);
    process.exitCode = 2;
  } else {
    const settings = mirrorSettings(values.config, process.env, command);
    const access = await clusterAccess(world);
    if (command === 'run') {
      await runMirror(world, access, settings, stopSignal());
      process.exit(0); // a connection to a server that has vanished would keep the process alive
    } else {
      const found = await verify(world, access, settings, parseTime('--wait', values.wait, 0), stopSignal());
      for (const namespace of found.unlistable)
        console.error(`${NAME}: the namespace ${namespace} is left out, because its VMs may not be listed`);
      console.log(differenceTable(found.differences));
      process.exitCode = found.differences.length === 0 ? 0 : 1;
    }
  }
} catch (error) {
  // Prints no stack trace, because most errors at the start are about settings.
  console.error(`${NAME}: ${messageOf(error)}`);
  process.exit(2);
}
