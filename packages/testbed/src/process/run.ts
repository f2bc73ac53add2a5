import { execFile } from 'node:child_process';
import { TestbedError } from '../errors.ts';

export interface RunOptions {
  readonly env?: NodeJS.ProcessEnv;
  /** Text for its standard input. */
  readonly input?: string;
  /** Ends it with SIGTERM after this time. @default never */
  readonly timeoutMs?: number;
}

export interface Result {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command to its end and gives what it printed; a failing one throws with what it said. */
export async function run(
  command: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<Result> {
  const result = await tryRun(command, args, options);
  if (result.code !== 0) {
    const said = result.stderr.trim() || result.stdout.trim() || 'nothing';
    throw new TestbedError(
      'COMMAND_FAILED',
      `\`${[command, ...args].join(' ')}\` failed with code ${result.code} and said: ${said}`,
    );
  }
  return result;
}

/** Like `run`, but a failure is an answer. */
export function tryRun(
  command: string,
  args: readonly string[],
  { env, input, timeoutMs = 0 }: RunOptions = {},
): Promise<Result> {
  return new Promise((resolve) => {
    const child = execFile(
      command,
      args,
      { env: env ?? process.env, maxBuffer: 64 * 1024 * 1024, timeout: timeoutMs },
      (error, stdout, stderr) => {
        if (error === null) resolve({ code: 0, stdout, stderr });
        else if (typeof error.code === 'number') resolve({ code: error.code, stdout, stderr });
        else resolve({ code: 127, stdout, stderr: stderr || error.message });
      },
    );
    child.stdin?.on('error', () => undefined); // it may end without having read all of it
    child.stdin?.end(input ?? '');
  });
}
