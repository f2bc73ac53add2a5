import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { chmod, mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { TestbedError } from '../errors.ts';
import type { Command, Exit, Report, Request } from './protocol.ts';
import { clearAbandonedRuns, RUN_PREFIX } from './run-record.ts';

/** Creates an empty folder that is removed when the program ends, even if it is killed. */
export function temporaryFolder(name: string): Promise<string> {
  return RunSupervisor.shared.folder(name);
}

/** A process started through the run supervisor. */
export interface SupervisedProcess {
  readonly pid: number;
  /** Resolves when the process exits. Does not keep the event loop alive. */
  readonly exited: Promise<Exit>;
  /** Like `exited`, but keeps the event loop alive until the process exits. */
  waitForExit(): Promise<Exit>;
  signal(signal: NodeJS.Signals): void;
}

interface Pending {
  readonly started: PromiseWithResolvers<number>;
  readonly exited: PromiseWithResolvers<Exit>;
}

/**
 * Client of the run supervisor process (`run-supervisor-main.ts`). Starts processes and creates folders that are
 * cleaned up when the program ends, even if it is killed. Each program has one instance, which starts on first use. It
 * is never disposed of, because the end of the program triggers the cleanup.
 */
export class RunSupervisor {
  static #shared: RunSupervisor | undefined;

  static get shared(): RunSupervisor {
    RunSupervisor.#shared ??= new RunSupervisor();
    return RunSupervisor.#shared;
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
        fileURLToPath(new URL('run-supervisor-main.ts', import.meta.url)),
        this.#dir,
      ],
      { detached: true, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] },
    );
    this.#process.on('message', (report: Report) => this.#handle(report));
    this.#process.once('exit', () => this.#onLost());
    // Neither the supervisor process nor its channel may keep the program alive, because the supervisor waits for the
    // program to end.
    this.#process.unref();
    this.#process.channel?.unref();
  }

  /** Creates an empty folder that is removed when the program ends. */
  async folder(name: string): Promise<string> {
    // PostgreSQL may run as another user and has its data in this folder. Therefore other users may traverse the
    // folder, but not list it.
    await chmod(this.#dir, 0o711);
    this.#lastFolder += 1;
    const path = join(this.#dir, `${name}-${this.#lastFolder}`);
    await mkdir(path);
    return path;
  }

  /** Registers a path outside the run's folder for removal when the program ends. */
  removeAtEnd(path: string): void {
    this.#send({ type: 'remove-at-end', path });
  }

  /** Starts a process. Rejects with `PART_DIED` if it cannot be started. */
  async start(command: Command): Promise<SupervisedProcess> {
    this.#lastId += 1;
    const id = this.#lastId;
    const pending: Pending = { started: Promise.withResolvers(), exited: Promise.withResolvers() };
    this.#pending.set(id, pending);
    this.#send({ type: 'start', id, ...command });
    const pid = await this.#waitFor(pending.started.promise);
    const exited = pending.exited.promise;
    return {
      pid,
      exited,
      waitForExit: () => this.#waitFor(exited),
      signal: (signal) => this.#send({ type: 'signal', id, signal }),
    };
  }

  /** Awaits a promise that only a message from the supervisor can settle, and keeps the event loop alive until then. */
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

  #send(request: Request): void {
    this.#process.send(request, (error) => {
      if (error !== null) this.#onLost();
    });
  }

  #handle(report: Report): void {
    const pending = this.#pending.get(report.id);
    if (pending === undefined) return;
    switch (report.type) {
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

  /**
   * Handles the loss of the supervisor process. The state of its children is then unknown, so every pending wait ends.
   */
  #onLost(): void {
    for (const { started, exited } of this.#pending.values()) {
      started.reject(new TestbedError('PART_DIED', 'the run supervisor process was killed'));
      exited.resolve({ code: null, signal: 'SIGKILL' });
    }
    this.#pending.clear();
    // The next use creates a new instance, which first kills this instance's processes and removes its folders.
    if (RunSupervisor.#shared === this) RunSupervisor.#shared = undefined;
  }
}
