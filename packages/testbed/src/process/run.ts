import { execFile } from 'node:child_process';
import { TestbedError } from '../errors.ts';

export interface RunOptions {
  readonly env?: NodeJS.ProcessEnv;
  /** Text for standard input. */
  readonly input?: string;
  /** Sends SIGTERM after this time. @default no timeout */
  readonly timeoutMs?: number;
}

export interface Result {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command and returns its output. Throws `COMMAND_FAILED` with the output if its exit code is not 0. */
export async function run(
  command: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<Result> {
  const result = await tryRun(command, args, options);
  if (result.code !== 0) {
    const output = result.stderr.trim() || result.stdout.trim() || '(no output)';
    throw new TestbedError(
      'COMMAND_FAILED',
      `\`${[command, ...args].join(' ')}\` failed with exit code ${result.code}: ${output}`,
    );
  }
  return result;
}

/** Like `run`, but returns the result of a failed command instead of throwing. */
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
    child.stdin?.on('error', () => undefined); // the command may exit before it has read all input
    child.stdin?.end(input ?? '');
  });
}
