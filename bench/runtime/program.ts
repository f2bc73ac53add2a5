import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { connectionsOf, type Usage, usageOf } from '../process.ts';

/** A controller under measurement: a separate process that prints its progress, one report per line. */
export class Program implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #lines: string[] = [];
  #changed = Promise.withResolvers<void>();

  /** @param output stream to which the program prints its reports; its other stream is inherited from this process */
  constructor(
    command: string,
    args: readonly string[],
    environment: Readonly<Record<string, string>>,
    output: 'stdout' | 'stderr' = 'stdout',
  ) {
    this.#process = spawn(command, args, {
      stdio: output === 'stdout' ? ['ignore', 'pipe', 'inherit'] : ['ignore', 'inherit', 'pipe'],
      env: { ...process.env, ...environment },
    });
    const input = this.#process[output];
    if (input === null) throw new Error(`the process has no ${output}`);
    this.#exited = once(this.#process, 'exit').then(() => this.#changed.resolve());
    createInterface({ input }).on('line', (line) => {
      this.#lines.push(line);
      this.#changed.resolve();
      this.#changed = Promise.withResolvers();
    });
  }

  /** The last lines, for error messages. */
  get tail(): string {
    return this.#lines.slice(-10).join('\n');
  }

  /**
   * Waits until the predicate accepts the list of all lines printed so far, and returns the lines. Throws if the
   * program exits first.
   */
  async waitForLines(predicate: (lines: readonly string[]) => boolean): Promise<readonly string[]> {
    while (!predicate(this.#lines)) {
      if (this.#process.exitCode !== null || this.#process.signalCode !== null)
        throw new Error(`the program exited; its last lines are:\n${this.tail}`);
      await this.#changed.promise;
    }
    return this.#lines;
  }

  /** Waits until the program has printed the line. */
  async waitForLine(line: string): Promise<void> {
    await this.waitForLines((lines) => lines.includes(line));
  }

  usage(): Usage {
    return usageOf(this.#process.pid);
  }

  /** Returns the number of the process's TCP connections to a port. */
  connections(port: number): number {
    return connectionsOf(this.#process.pid, port);
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    this.#process.kill(signal);
    await this.#exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) await this.end('SIGTERM');
  }
}
