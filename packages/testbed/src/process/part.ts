import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '@vmwright/core';
import { CanarySearches } from '../canaries/searches.ts';
import { TestbedError } from '../errors.ts';
import type { Exit } from './protocol.ts';
import { RunSupervisor, type SupervisedProcess } from './run-supervisor.ts';
import { until } from './until.ts';

export interface PartOptions {
  /** Display name, such as `kube-apiserver`. Also names the log file. */
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly user?: { readonly uid: number; readonly gid: number };
  /** Returns true once the part serves requests. An exception means "not yet". */
  readonly ready: () => Promise<boolean>;
  /** Timeout for `ready`. An API server on a loaded two-core machine has taken 20 s. @default 60_000 */
  readonly readyTimeoutMs?: number;
  /** Signal for a graceful stop. @default 'SIGTERM' */
  readonly stopSignal?: NodeJS.Signals;
  /** Time for a graceful stop, after which the part is killed. @default 15_000 */
  readonly stopGraceMs?: number;
  /** Signal for an immediate stop. @default 'SIGKILL' */
  readonly killSignal?: NodeJS.Signals;
  /**
   * Whether the part is a program of this repository. If true, neither its log nor its arguments may contain a
   * credential.
   * @default false
   */
  readonly isOurs?: boolean;
  /** Folder for the files of the part; the caller removes it. @default a new folder that is removed with the part */
  readonly dir?: string;
}

/**
 * A program that the testbed runs, such as an API server. Tests can kill, pause and restart it to see how its clients
 * react.
 */
export class Part implements AsyncDisposable {
  readonly name: string;
  readonly dir: string;
  readonly log: string;
  readonly #options: PartOptions;
  #process: SupervisedProcess | undefined;
  #lastExit: Exit | undefined;

  private constructor(options: PartOptions, dir: string) {
    this.name = options.name;
    this.dir = dir;
    this.log = join(dir, `${options.name}.log`);
    this.#options = options;
  }

  static async start(options: PartOptions): Promise<Part> {
    const part = new Part(options, options.dir ?? (await RunSupervisor.shared.folder(options.name)));
    try {
      await part.start();
    } catch (error) {
      await part[Symbol.asyncDispose]();
      throw error;
    }
    return part;
  }

  get #searches(): CanarySearches | undefined {
    return this.#options.isOurs ? CanarySearches.current : undefined;
  }

  get running(): boolean {
    return this.#process !== undefined;
  }

  get pid(): number {
    if (this.#process === undefined) throw new TestbedError('PART_DIED', `${this.name} is not running`);
    return this.#process.pid;
  }

  /** Starts or restarts the part with the same files and ports, and waits until it serves. */
  async start(): Promise<void> {
    const {
      name,
      command,
      args,
      env,
      user,
      ready,
      readyTimeoutMs = 60_000,
      killSignal = 'SIGKILL',
    } = this.#options;
    this.#searches?.text(`the arguments of ${name}`, args.join(' '));
    const { PATH = '', NODE_COMPILE_CACHE } = process.env;
    const inherited = { PATH, ...(NODE_COMPILE_CACHE && { NODE_COMPILE_CACHE }) };
    const started = await RunSupervisor.shared
      .start({
        command,
        args,
        env: { ...inherited, HOME: this.dir, TMPDIR: this.dir, ...env },
        cwd: this.dir,
        log: this.log,
        killSignal,
        ...(user && { user }),
      })
      .catch((error) => {
        throw new TestbedError('PART_DIED', `${name} cannot be started: ${messageOf(error)}`, {
          cause: error,
        });
      });
    this.#process = started;
    let exit: Exit | undefined;
    const exited = new AbortController();
    void started.exited.then((its) => {
      if (this.#process === started) this.#process = undefined;
      exit = its;
      this.#lastExit = its;
      exited.abort();
    });
    try {
      await until(ready, { what: `${name} is ready`, timeoutMs: readyTimeoutMs, signal: exited.signal });
    } catch (error) {
      const what = exit
        ? `exited before it was ready (${describe(exit)})`
        : `is not ready: ${messageOf(error)}`;
      throw new TestbedError(
        'PART_DIED',
        `${name} ${what}. Last lines of its log:\n${await this.logTail()}`,
        {
          cause: error,
        },
      );
    }
  }

  /** Stops the part gracefully, or kills it after `stopGraceMs`. Resolves when it has exited. */
  async stop(): Promise<void> {
    const running = this.#process;
    if (running === undefined) return;
    running.signal(this.#options.stopSignal ?? 'SIGTERM');
    const timer = new AbortController();
    const timedOut = await Promise.race([
      running.waitForExit().then(() => false),
      sleep(this.#options.stopGraceMs ?? 15_000, true, { signal: timer.signal }).catch(() => false),
    ]);
    timer.abort();
    if (timedOut) await this.kill();
  }

  /** Kills the part immediately, as a power failure would. */
  async kill(): Promise<void> {
    const running = this.#process;
    if (running === undefined) return;
    running.signal(this.#options.killSignal ?? 'SIGKILL');
    running.signal('SIGCONT');
    await running.waitForExit();
  }

  /** Freezes the process: connections stay open but get no response. */
  pause(): void {
    this.#process?.signal('SIGSTOP');
  }

  resume(): void {
    this.#process?.signal('SIGCONT');
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  /**
   * Waits until the process exits for any reason.
   * @returns its exit code or signal; undefined if it was never started
   */
  async exited(): Promise<Exit | undefined> {
    return this.#process === undefined ? this.#lastExit : this.#process.waitForExit();
  }

  async logTail(lines = 15): Promise<string> {
    const text = await readFile(this.log, 'utf8').catch(() => '(no log)');
    return text.trimEnd().split('\n').slice(-lines).join('\n');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill(); // the state of the part is discarded, so a graceful stop would only take time
    this.#searches?.file(`the log of ${this.name}`, this.log);
    if (this.#options.dir === undefined) await rm(this.dir, { recursive: true, force: true, maxRetries: 5 });
  }
}

function describe(exit: Exit): string {
  return exit.signal === null ? `exit code ${exit.code}` : exit.signal;
}
