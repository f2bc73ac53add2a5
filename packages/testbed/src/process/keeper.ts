import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { chmod, mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { TestbedError } from '../errors.ts';
import type { Command, Exit, Report, Request } from './protocol.ts';
import { clearAbandonedRuns, RUN_PREFIX } from './run-record.ts';

/** A folder for now: removed at the latest when the program has ended, however it ends. */
export function temporaryFolder(name: string): Promise<string> {
  return Keeper.shared.folder(name);
}

/** A process that the keeper started for us. */
export interface KeptProcess {
  readonly pid: number;
  /** Settles at its end; does not keep the program from ending. */
  readonly exited: Promise<Exit>;
  /** The same for one who waits and does nothing else. */
  waitForExit(): Promise<Exit>;
  signal(signal: NodeJS.Signals): void;
}

interface Pending {
  readonly started: PromiseWithResolvers<number>;
  readonly exited: PromiseWithResolvers<Exit>;
}

/**
 * This program's side of its keeper process (see `keeper-main.ts`): starts processes and hands out folders that are
 * certain to be gone after the program is, however it ends. One a program, started when first needed, never disposed:
 * the end of the program is what it waits for.
 */
export class Keeper {
  static #shared: Keeper | undefined;

  static get shared(): Keeper {
    Keeper.#shared ??= new Keeper();
    return Keeper.#shared;
  }

  readonly #dir: string;
  readonly #process: ChildProcess;
  readonly #pending = new Map<number, Pending>();
  #lastId = 0;
  #lastFolder = 0;
  #waiting = 0;

  private constructor() {
    clearAbandonedRuns();
    this.#dir = mkdtempSync(join(tmpdir(), RUN_PREFIX));
    this.#process = spawn(
      process.execPath,
      [
        '--disable-warning=ExperimentalWarning',
        fileURLToPath(new URL('keeper-main.ts', import.meta.url)),
        this.#dir,
      ],
      { detached: true, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] },
    );
    this.#process.on('message', (report: Report) => this.#take(report));
    this.#process.once('exit', () => this.#lose());
    // Neither the process nor the channel keeps the program from ending: its end is the keeper's cue.
    this.#process.unref();
    this.#process.channel?.unref();
  }

  /** A new empty folder, removed at the latest when the program has ended. */
  async folder(name: string): Promise<string> {
    // Others may pass through but not look around: PostgreSQL, run as another user, has its data in here.
    await chmod(this.#dir, 0o711);
    this.#lastFolder += 1;
    const path = join(this.#dir, `${name}-${this.#lastFolder}`);
    await mkdir(path);
    return path;
  }

  /** A folder elsewhere that must not stay behind either. */
  removeAtEnd(path: string): void {
    this.#ask({ do: 'remove-at-end', path });
  }

  async start(command: Command): Promise<KeptProcess> {
    this.#lastId += 1;
    const id = this.#lastId;
    const pending: Pending = { started: Promise.withResolvers(), exited: Promise.withResolvers() };
    this.#pending.set(id, pending);
    this.#ask({ do: 'start', id, ...command });
    const pid = await this.#waitFor(pending.started.promise);
    const exited = pending.exited.promise;
    return {
      pid,
      exited,
      waitForExit: () => this.#waitFor(exited),
      signal: (signal) => this.#ask({ do: 'signal', id, signal }),
    };
  }

  /** The channel is all that such a promise hangs on, so it must keep the program alive meanwhile. */
  async #waitFor<T>(promise: Promise<T>): Promise<T> {
    this.#waiting += 1;
    this.#process.channel?.ref();
    try {
      return await promise;
    } finally {
      this.#waiting -= 1;
      if (this.#waiting === 0) this.#process.channel?.unref();
    }
  }

  #ask(request: Request): void {
    this.#process.send(request, (error) => {
      if (error !== null) this.#lose();
    });
  }

  #take(report: Report): void {
    const pending = this.#pending.get(report.id);
    if (pending === undefined) return;
    switch (report.is) {
      case 'started':
        pending.started.resolve(report.pid);
        break;
      case 'failed':
        this.#pending.delete(report.id);
        pending.started.reject(new TestbedError('PART_DIED', report.message));
        break;
      case 'exited':
        this.#pending.delete(report.id);
        pending.exited.resolve({ code: report.code, signal: report.signal });
        break;
    }
  }

  /** The keeper itself was killed: nothing can be said of its processes any more, so everyone who waits is told. */
  #lose(): void {
    for (const { started, exited } of this.#pending.values()) {
      started.reject(new TestbedError('PART_DIED', 'the process that keeps the testbed was killed'));
      exited.resolve({ code: null, signal: 'SIGKILL' });
    }
    this.#pending.clear();
    if (Keeper.#shared === this) Keeper.#shared = undefined; // the next one clears up what this one left
  }
}
