#!/usr/bin/env -S node --disable-warning=ExperimentalWarning
import { basename } from 'node:path';
import { messageOf } from '@vmwright/core/errors';
import { CommanderError } from 'commander';
import { createProgram } from './cli/program.ts';
import { normalize, sentenceOf } from './settings/flags.ts';

const isPlugin = basename(process.argv[1] ?? '').startsWith('kubectl-vmwright');
const program = createProgram(isPlugin ? 'kubectl vmwright' : 'vmwright');
const [command = '--help', ...args] = process.argv.slice(2);
try {
  await program.parseAsync([command, ...args.map(normalize)], { from: 'user' });
} catch (error) {
  if (!(error instanceof CommanderError)) {
    // Prints no stack trace, because most errors are about settings or access.
    const { remedyFor } = await import('./cli/remedy.ts');
    console.error(`vmwright: ${messageOf(error)}${remedyFor(error)}`);
    process.exit(1);
  }
  if (error.exitCode !== 0) process.exitCode = 2;
  // `commander.help`: a command group was called without a command, and the library has already printed the help text.
  if (error.exitCode !== 0 && error.code !== 'commander.help') {
    const called = program.commands.find((each) => each.name() === command);
    const flags = (called?.options ?? []).flatMap(({ long }) => long?.slice(2) ?? []);
    console.error(`vmwright: ${sentenceOf(error, flags)}; --help lists the commands and flags`);
  }
}
