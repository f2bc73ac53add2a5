import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createInterface } from 'node:readline';

const TICKS_PER_SECOND = 100;

/** A controller under measurement, as a process of its own that tells what it does in lines. */
export class Program implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #told: string[] = [];
  #tell = Promise.withResolvers<void>();

  constructor(command: string, args: readonly string[], environment: Readonly<Record<string, string>>) {
    this.#process = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, ...environment },
    });
    const { stdout } = this.#process;
    if (stdout === null) throw new Error('no output');
    this.#exited = once(this.#process, 'exit').then(() => this.#tell.resolve());
    createInterface({ input: stdout }).on('line', (line) => {
      this.#told.push(line);
      this.#tell.resolve();
      this.#tell = Promise.withResolvers();
    });
  }

  /** What it has told so far, once that is enough. */
  async told(enough: (lines: readonly string[]) => boolean): Promise<readonly string[]> {
    while (!enough(this.#told)) {
      if (this.#process.exitCode !== null || this.#process.signalCode !== null)
        throw new Error(`the program has ended; it told ${this.#told.length} lines`);
      await this.#tell.promise;
    }
    return this.#told;
  }

  /** Resolves when it has told this. */
  async tells(line: string): Promise<void> {
    await this.told((lines) => lines.includes(line));
  }

  /** Seconds of CPU that it has used, and megabytes of memory that it holds. */
  usage(): { readonly cpu: number; readonly rss: number } {
    const { pid } = this.#process;
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    const cpu = (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
    const rss = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
    return { cpu, rss };
  }

  /** How many connections it has to a port. */
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
