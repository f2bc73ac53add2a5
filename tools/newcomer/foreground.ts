import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SessionOptions } from './session.ts';

/** Maximum time until a command ends after Ctrl-C. */
const STOP_MS = 120_000;

/** A command that runs in the foreground of its own terminal until Ctrl-C. */
export class Foreground implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #exit: Promise<unknown>;
  #output = '';

  constructor(line: string, { cwd, env }: SessionOptions) {
    // The command gets its own process group, as in a terminal, so that Ctrl-C reaches the command and its children.
    this.#process = spawn('bash', ['--noprofile', '--norc', '-c', line], { cwd, env, detached: true });
    this.#exit = once(this.#process, 'close');
    // Kills the command when this process ends, because Ctrl-C in this process's terminal does not reach the process
    // group of the command.
    process.once('exit', () => this.#signal('SIGKILL'));
    for (const stream of [this.#process.stdout, this.#process.stderr])
      stream?.on('data', (chunk) => (this.#output += String(chunk)));
  }

  /** Output of the command so far. */
  get output(): string {
    return this.#output;
  }

  /** Waits until a file exists. @throws Error if the command ends before that, or does not create the file in time */
  async created(file: string, timeoutMs: number): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    while (!existsSync(file)) {
      const hasEnded = this.#process.exitCode !== null || this.#process.signalCode !== null;
      if (hasEnded || performance.now() > deadline)
        throw new Error(`${file} was not created:\n${this.#output}`);
      await sleep(100);
    }
  }

  /** Presses Ctrl-C, and waits until the command has ended. @throws Error if the command does not end in time */
  async interrupt(): Promise<void> {
    this.#signal('SIGINT');
    const isLate = sleep(STOP_MS, true, { ref: false });
    if (await Promise.race([this.#exit.then(() => false), isLate]))
      throw new Error(`the command did not end within ${STOP_MS / 1_000} s of Ctrl-C:\n${this.#output}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#signal('SIGKILL');
    await this.#exit;
  }

  #signal(signal: NodeJS.Signals): void {
    if (
      this.#process.pid !== undefined &&
      this.#process.exitCode === null &&
      this.#process.signalCode === null
    )
      process.kill(-this.#process.pid, signal);
  }
}
