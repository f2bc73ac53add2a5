import { nodeWorld, stopSignal } from '@vmwright/runtime';
import type { Command } from 'commander';
import { clusterAccess } from '../access.ts';
import { runOperator } from '../operator.ts';
import type { Flags } from '../settings/flags.ts';
import { loadSettings } from '../settings/settings.ts';
import { clusterOptions } from './options.ts';

/** `vmwright run`: runs the operator until SIGTERM or SIGINT. */
export async function run(flags: Flags, command: Command): Promise<void> {
  const settings = await loadSettings(flags, process.env);
  const { logFormat = process.stderr.isTTY ? 'text' : 'json' } = settings;
  const access = await clusterAccess(nodeWorld, clusterOptions(command));
  await runOperator(nodeWorld, access, { ...settings, logFormat }, stopSignal());
}
