import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createInterface } from 'node:readline';

const TICKS_PER_SECOND = 100;

/** Returns the CPU time that a process has used, in seconds. */
export function cpuOf(pid: number | undefined): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** A controller under measurement: a separate process that reports its progress as lines. */
export class Program implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #lines: string[] = [];
  #changed = Promise.withResolvers<void>();

  /** @param output stream with the lines; the other one is passed through */
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

  /** Waits until the predicate holds for the lines so far, and returns them. Throws if the program exits first. */
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

  /**
   * Returns the used CPU time in seconds, and the current and the largest resident memory in MB. `own` is the part that belongs to
   * this process alone; the rest are pages of the executable, which all processes share.
   */
  usage(): { readonly cpu: number; readonly rss: number; readonly own: number; readonly peak: number } {
    const { pid } = this.#process;
    const cpu = cpuOf(pid);
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const megabytes = (field: string) => Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1]) / 1024;
    return { cpu, rss: megabytes('VmRSS'), own: megabytes('RssAnon'), peak: megabytes('VmHWM') };
  }

  /** Returns the number of the process's TCP connections to a port. */
  connections(port: number): number {
    const { pid } = this.#process;
    const inodes = new Set(
      readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
        const target = readlinkSync(`/proc/${pid}/fd/${fd}`);
        return /^socket:\[(\d+)\]$/.exec(target)?.[1] ?? [];
      }),
    );
    const remote = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
    const sockets = ['tcp', 'tcp6'].flatMap((file) =>
      readFileSync(`/proc/${pid}/net/${file}`, 'utf8').split('\n'),
    );
    return sockets.filter((line) => {
      const fields = line.trim().split(/\s+/);
      return fields[2]?.endsWith(remote) && inodes.has(fields[9] ?? '');
    }).length;
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    this.#process.kill(signal);
    await this.#exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) await this.end('SIGTERM');
  }
}
