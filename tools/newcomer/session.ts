import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';

/** Result of a command in a shell. */
export interface SessionResult {
  readonly code: number;
  /** Standard output and standard error, in the order in which they were written. */
  readonly lines: readonly string[];
}

export interface SessionOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

/**
 * A shell in which commands run one after the other, as in a terminal. Variables that one command sets are set for the
 * next.
 */
export class Session implements Disposable {
  readonly #shell: ChildProcessWithoutNullStreams;
  #output = '';
  #onOutput: () => void = () => undefined;

  constructor({ cwd, env }: SessionOptions) {
    this.#shell = spawn('bash', ['--noprofile', '--norc'], { cwd, env, detached: true });
    for (const stream of [this.#shell.stdout, this.#shell.stderr])
      stream.on('data', (chunk) => {
        this.#output += String(chunk);
        this.#onOutput();
      });
    this.#shell.stdin.write('exec 2>&1\n');
  }

  /**
   * Runs a command and waits until it has ended.
   * @throws Error if the command takes too long; the session is then unusable
   */
  async run(line: string, timeoutMs: number): Promise<SessionResult> {
    const mark = randomUUID();
    this.#output = '';
    const ended = Promise.withResolvers<SessionResult>();
    this.#onOutput = () => {
      const [, text, code] = new RegExp(`^([^]*)\n${mark} (\\d+)\n$`).exec(this.#output) ?? [];
      if (text === undefined) return;
      const trimmed = text.trimEnd();
      ended.resolve({ code: Number(code), lines: trimmed === '' ? [] : trimmed.split('\n') });
    };
    const timer = setTimeout(() => {
      ended.reject(new Error(`\`${line}\` has not ended after ${timeoutMs / 1_000} s:\n${this.#output}`));
    }, timeoutMs);
    // The command has no input. Otherwise, it would read the commands that follow.
    this.#shell.stdin.write(`{ ${line}\n} </dev/null; printf '\\n%s %s\\n' ${mark} $?\n`);
    try {
      return await ended.promise;
    } finally {
      clearTimeout(timer);
    }
  }

  [Symbol.dispose](): void {
    if (this.#shell.pid !== undefined && this.#shell.exitCode === null)
      process.kill(-this.#shell.pid, 'SIGKILL');
  }
}
