import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '@vmwright/core';
import { Keeper } from '../process/keeper.ts';
import type { ServerUser } from './server-user.ts';

export interface KeptCommandOptions {
  /** Where it runs. */
  readonly dir: string;
  readonly user: ServerUser | undefined;
}

export interface Outcome {
  readonly ok: boolean;
  /** What it printed, or why it could not be started. */
  readonly said: string;
}

/**
 * Runs one of PostgreSQL's commands to its end. By the keeper: were it a child of this program, an `initdb` whose
 * program is killed would go on to write into the folder that the keeper is removing.
 */
export async function keptCommand(
  command: string,
  args: readonly string[],
  { dir, user }: KeptCommandOptions,
): Promise<Outcome> {
  const log = join(dir, 'command.log');
  try {
    const kept = await Keeper.shared.start({
      command,
      args,
      env: { PATH: process.env.PATH ?? '', HOME: dir, TMPDIR: dir, LC_ALL: 'C' },
      cwd: dir,
      log,
      lastSignal: 'SIGTERM',
      ...(user && { user }),
    });
    const { code } = await kept.waitForExit();
    const said = (await readFile(log, 'utf8')).trim();
    return { ok: code === 0, said };
  } catch (error) {
    return { ok: false, said: messageOf(error) };
  } finally {
    await rm(log, { force: true });
  }
}
