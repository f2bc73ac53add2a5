import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const TICKS_PER_SECOND = 100;

/** A controller under measurement, as a process of its own. */
export class Program implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #synced: Promise<unknown>;

  /** @param cache where Node keeps what it has compiled, as an image of the program would */
  constructor(command: string, args: readonly string[], kubeconfig: string, cache: string) {
    this.#process = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, KUBECONFIG: kubeconfig, NODE_COMPILE_CACHE: cache },
    });
    const { stdout } = this.#process;
    if (stdout === null) throw new Error('no output');
    this.#synced = once(createInterface({ input: stdout }), 'line');
  }

  /** Resolves when its caches are filled. */
  async synced(): Promise<void> {
    await this.#synced;
  }

  /** Seconds of CPU that it has used, and megabytes of memory that it holds. */
  usage(): { readonly cpu: number; readonly rss: number } {
    const { pid } = this.#process;
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    const cpu = (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
    const rss = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
    return { cpu, rss };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = once(this.#process, 'exit');
    this.#process.kill('SIGTERM');
    await exited;
  }
}
