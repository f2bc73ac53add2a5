#!/usr/bin/env -S node --disable-warning=ExperimentalWarning
import { messageOf, stopSignal, nodeWorld as world } from '@vmwright/runtime';
import { Command, CommanderError } from 'commander';
import { clusterAccess } from './access.ts';
import { NAME, runMirror } from './mirror/program.ts';
import { DEFAULT_CONFIG, mirrorSettings } from './mirror/settings.ts';
import { mirrorSettingRows } from './mirror/settings-table.ts';
import { printVerification, verify } from './mirror/verify.ts';
import { sentenceOf } from './settings/flags.ts';
import { parseTime } from './settings/values.ts';
import { table } from './table.ts';

const FLAGS = ['config', 'wait', 'help'];

const program = new Command(NAME)
  .description('Mirrors the status of KubeVirt VMs into the PostgreSQL database of SSVirt.')
  .exitOverride()
  .configureOutput({ outputError: () => undefined })
  .addHelpText('after', () => `\n${settingsText()}`);

program
  .command('run', { isDefault: true })
  .description('runs until SIGTERM or SIGINT; the default')
  .option('--config <file>', `config file (default: ${DEFAULT_CONFIG}, which may be missing)`)
  .action(async ({ config }: { readonly config?: string }) => {
    const settings = mirrorSettings(config, process.env, 'run');
    await runMirror(world, await clusterAccess(world), settings, stopSignal());
    process.exit(0); // otherwise, an open connection to a vanished server would keep the process alive
  });

program
  .command('verify')
  .description('compares cluster and table; exit code 1 if they differ, 2 if the comparison fails')
  .option('--config <file>', `config file (default: ${DEFAULT_CONFIG}, which may be missing)`)
  .option(
    '--wait <time>',
    'repeats the comparison until cluster and table agree, for at most this time',
    '0s',
  )
  .action(async ({ config, wait }: { readonly config?: string; readonly wait: string }) => {
    const settings = mirrorSettings(config, process.env, 'verify');
    const waitMs = parseTime('--wait', wait, 0);
    const found = await verify(world, await clusterAccess(world), settings, waitMs, stopSignal());
    process.exitCode = printVerification(NAME, found);
  });

/**
 * Settings of the config file and the environment. A variable takes precedence over the file, and the file over the
 * default.
 */
function settingsText(): string {
  const rows = mirrorSettingRows().map(({ key, variable, byDefault }) => [key, variable, byDefault]);
  return `Settings in the config file, or as environment variables, which take precedence:\n${table(
    [['KEY', 'VARIABLE', 'DEFAULT'], ...rows],
    '  ',
  )}\n\ndocs/mirror.md describes them.`;
}

try {
  // Flags with one dash are accepted too, as in Go programs.
  const args = process.argv.slice(2).map((arg) => arg.replace(/^-(?=config\b|wait\b|help\b)/, '--'));
  await program.parseAsync(args, { from: 'user' });
} catch (error) {
  const isUsage = error instanceof CommanderError;
  if (!isUsage || error.exitCode !== 0) {
    // Prints no stack trace, because most errors at the start are about settings.
    console.error(`${NAME}: ${isUsage ? sentenceOf(error, FLAGS) : messageOf(error)}`);
    process.exit(2);
  }
}
