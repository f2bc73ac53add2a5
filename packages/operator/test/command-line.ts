import { execFile } from 'node:child_process';
import { mkdir, symlink } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CanarySearches, temporaryFolder } from '@vmwright/testbed';

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));

export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `vmwright` as a process without a terminal. Its environment has only these variables and a PATH. */
export async function vmwright(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<CommandResult> {
  const result = await run(process.execPath, ['--disable-warning=ExperimentalWarning', MAIN, ...args], env);
  CanarySearches.current?.text(`the output of vmwright ${args[0]}`, result.stdout + result.stderr);
  return result;
}

export function run(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<CommandResult> {
  const { PATH = '' } = process.env;
  return new Promise((resolve) => {
    execFile(command, args, { env: { PATH, ...env }, maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 127;
      resolve({ code, stdout, stderr });
    });
  });
}

/** Returns a PATH on which kubectl finds the plugin `kubectl-vmwright`. */
export async function pluginPath(): Promise<string> {
  const folder = join(await temporaryFolder('plugin'), 'bin');
  await mkdir(folder, { recursive: true });
  await symlink(MAIN, join(folder, 'kubectl-vmwright'));
  return [folder, process.env.PATH].join(delimiter);
}
