import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '@vmwright/core';
import { RunSupervisor } from '../process/run-supervisor.ts';
import type { ServerUser } from './server-user.ts';

export interface SupervisedCommandOptions {
  /** Working directory. */
  readonly dir: string;
  readonly user: ServerUser | undefined;
}

export interface Outcome {
  readonly ok: boolean;
  /** Output of the command, or the reason why it could not be started. */
  readonly output: string;
}

/**
 * Runs a PostgreSQL command as a child of the run supervisor. As a child of this program, a command such as `initdb`
 * would survive a kill of the program. It would then keep writing into the folder that the supervisor removes.
 */
export async function supervisedCommand(
  command: string,
  args: readonly string[],
  { dir, user }: SupervisedCommandOptions,
): Promise<Outcome> {
  const log = join(dir, 'command.log');
  try {
    const started = await RunSupervisor.shared.start({
      command,
      args,
      env: { PATH: process.env.PATH ?? '', HOME: dir, TMPDIR: dir, LC_ALL: 'C' },
      cwd: dir,
      log,
      killSignal: 'SIGTERM',
      ...(user && { user }),
    });
    const { code } = await started.waitForExit();
    const output = (await readFile(log, 'utf8')).trim();
    return { ok: code === 0, output };
  } catch (error) {
    return { ok: false, output: messageOf(error) };
  } finally {
    await rm(log, { force: true });
  }
}
