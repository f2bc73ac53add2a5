import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '@vmwright/core';
import { TestbedError } from '../errors.ts';
import { Keeper, type KeptProcess } from './keeper.ts';
import type { Exit } from './protocol.ts';
import { until } from './until.ts';

export interface PartOptions {
  /** As people know it: `kube-apiserver`, `etcd`. */
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly user?: { readonly uid: number; readonly gid: number };
  /** True once it serves. What it throws means "not yet". */
  readonly ready: () => Promise<boolean>;
  /** @default 60_000: an API server on a loaded two-core machine has taken 20 s. */
  readonly readyTimeoutMs?: number;
  /** What asks for an orderly stop. @default 'SIGTERM' */
  readonly stopSignal?: NodeJS.Signals;
  /** How long an orderly stop may take before it is killed. @default 15_000 */
  readonly stopGraceMs?: number;
  /** What ends it at once. @default 'SIGKILL' */
  readonly killSignal?: NodeJS.Signals;
  /** Where it keeps its files; the part's own folder, removed with it, unless given. */
  readonly dir?: string;
}

/**
 * A real program of the testbed: started, watched, stopped; and killed, paused and restarted by tests that want to see
 * what others make of that.
 */
export class Part implements AsyncDisposable {
  readonly name: string;
  readonly dir: string;
  readonly log: string;
  readonly #options: PartOptions;
  #process: KeptProcess | undefined;
  #lastExit: Exit | undefined;

  private constructor(options: PartOptions, dir: string) {
    this.name = options.name;
    this.dir = dir;
    this.log = join(dir, `${options.name}.log`);
    this.#options = options;
  }

  static async start(options: PartOptions): Promise<Part> {
    const part = new Part(options, options.dir ?? (await Keeper.shared.folder(options.name)));
    try {
      await part.start();
    } catch (error) {
      await part[Symbol.asyncDispose]();
      throw error;
    }
    return part;
  }

  get running(): boolean {
    return this.#process !== undefined;
  }

  get pid(): number {
    if (this.#process === undefined) throw new TestbedError('PART_DIED', `${this.name} is not running`);
    return this.#process.pid;
  }

  /** Starts it (again), with the same files and ports, and waits until it serves. */
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
    const path = { PATH: process.env.PATH ?? '', HOME: this.dir, TMPDIR: this.dir };
    const kept = await Keeper.shared
      .start({
        command,
        args,
        env: { ...path, ...env },
        cwd: this.dir,
        log: this.log,
        lastSignal: killSignal,
        ...(user && { user }),
      })
      .catch((error) => {
        throw new TestbedError('PART_DIED', `${name} cannot be started: ${messageOf(error)}`, {
          cause: error,
        });
      });
    this.#process = kept;
    let exit: Exit | undefined;
    const gone = new AbortController();
    void kept.exited.then((its) => {
      if (this.#process === kept) this.#process = undefined;
      exit = its;
      this.#lastExit = its;
      gone.abort();
    });
    try {
      await until(ready, { what: `${name} ready`, timeoutMs: readyTimeoutMs, signal: gone.signal });
    } catch (error) {
      const what = exit
        ? `ended before it was ready (${described(exit)})`
        : `is not ready: ${messageOf(error)}`;
      throw new TestbedError('PART_DIED', `${name} ${what}. The end of its log:\n${await this.logTail()}`, {
        cause: error,
      });
    }
  }

  /** Asks it to stop and waits; one that takes too long is killed. */
  async stop(): Promise<void> {
    const kept = this.#process;
    if (kept === undefined) return;
    kept.signal(this.#options.stopSignal ?? 'SIGTERM');
    const waiting = new AbortController();
    const late = await Promise.race([
      kept.waitForExit().then(() => false),
      sleep(this.#options.stopGraceMs ?? 15_000, true, { signal: waiting.signal }).catch(() => false),
    ]);
    waiting.abort();
    if (late) await this.kill();
  }

  /** Ends it at once, as a power cut would. */
  async kill(): Promise<void> {
    const kept = this.#process;
    if (kept === undefined) return;
    kept.signal(this.#options.killSignal ?? 'SIGKILL');
    kept.signal('SIGCONT');
    await kept.waitForExit();
  }

  /** Freezes it: connections stay open and nothing answers. */
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

  /** How its process ended, as soon as it has, by whoever's hand. */
  async exited(): Promise<Exit | undefined> {
    return this.#process === undefined ? this.#lastExit : this.#process.waitForExit();
  }

  async logTail(lines = 15): Promise<string> {
    const text = await readFile(this.log, 'utf8').catch(() => '(no log)');
    return text.trimEnd().split('\n').slice(-lines).join('\n');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill(); // nobody reads its state again, so there is nothing to stop in order for
    if (this.#options.dir === undefined) await rm(this.dir, { recursive: true, force: true, maxRetries: 5 });
  }
}

function described(exit: Exit): string {
  return exit.signal === null ? `exit code ${exit.code}` : exit.signal;
}
