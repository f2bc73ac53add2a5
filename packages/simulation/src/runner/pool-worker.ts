import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Tally } from './tally.ts';
import type { LostWorker, Task, WorkerInput, WorkerMessage, WorkerModules } from './task.ts';

/** Interval between checks for progress. */
const LOOK_MS = 500;

/**
 * Heap limits with a large young generation. Garbage collections are then rare, and cheap because almost no object
 * outlives a run.
 */
const resourceLimits = { maxYoungGenerationSizeMb: 64 };

/** Progress of a thread, and the time that the thread has used. */
interface Progress {
  readonly seed: number;
  readonly events: number;
  /** Milliseconds of CPU time. */
  readonly busyMs: number;
  /** Milliseconds in which the thread's event loop was idle. */
  readonly idleMs: number;
}

/** One thread of the pool, with a watchdog. */
export class PoolWorker implements AsyncDisposable {
  readonly #hangTimeoutMs: number;
  readonly #at = new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));
  readonly #worker: Worker;
  readonly #ready: Promise<unknown>;

  constructor(modules: WorkerModules, hangTimeoutMs: number) {
    this.#hangTimeoutMs = hangTimeoutMs;
    const input: WorkerInput = { ...modules, at: this.#at.buffer };
    // Passes no flags to the thread, because the flags of a test runner must not affect the simulated code.
    this.#worker = new Worker(new URL('./worker.ts', import.meta.url), {
      workerData: input,
      execArgv: [],
      resourceLimits,
    });
    this.#ready = Promise.race([
      once(this.#worker, 'message'), // rejects with the thread's error
      once(this.#worker, 'exit').then(([code]) => {
        throw new Error(`a simulation thread exited with code ${code} before it was ready`);
      }),
    ]);
    this.#ready.catch(() => undefined); // reported by `run`
  }

  /** Runs a task. @throws when the thread fails to start or the scenario does not exist */
  async run(task: Task): Promise<Tally | LostWorker> {
    await this.#ready;
    const answer = Promise.withResolvers<Tally | LostWorker>();
    const lose = (why: string) => answer.resolve({ lostAt: task.from + Atomics.load(this.#at, 0), why });
    const onMessage = (message: WorkerMessage) => {
      if ('tally' in message) answer.resolve(message.tally);
      else if ('error' in message) answer.reject(new Error(message.error));
    };
    const onError = (error: unknown) =>
      lose(`the run ended its thread: ${error instanceof Error ? error.message : String(error)}`);
    const onExit = (code: number) => lose(`the run ended its thread with exit code ${code}`);
    using _ = this.#watch((why) => {
      lose(why);
      void this.#worker.terminate();
    });
    this.#worker.on('message', onMessage).on('error', onError).on('exit', onExit);
    this.#worker.postMessage(task);
    try {
      return await answer.promise;
    } finally {
      this.#worker.off('message', onMessage).off('error', onError).off('exit', onExit);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate();
  }

  /**
   * Detects a run that never ends: it loops without yielding, or waits for something outside the simulated world. In
   * both cases, the number of events stops growing. Measures CPU time and idle time, because elapsed time also grows
   * while other processes use the machine.
   */
  #watch(hangs: (why: string) => void): Disposable {
    let last: Progress | undefined;
    const look = async () => {
      const now = await this.#progress();
      if (now.seed !== last?.seed || now.events !== last.events) last = now;
      const seconds = this.#hangTimeoutMs / 1_000;
      if (now.busyMs - last.busyMs > this.#hangTimeoutMs) hangs(`no event within ${seconds} s of CPU time`);
      else if (now.idleMs - last.idleMs > this.#hangTimeoutMs)
        hangs(`waited ${seconds} s for something outside the simulated world`);
    };
    // Ignores errors: the CPU usage of an ended thread is not available. `onExit` reports the end of the thread.
    const timer = setInterval(() => void look().catch(() => undefined), LOOK_MS);
    return { [Symbol.dispose]: () => clearInterval(timer) };
  }

  async #progress(): Promise<Progress> {
    const [seed, events] = [Atomics.load(this.#at, 0), Atomics.load(this.#at, 1)];
    const { user, system } = await this.#worker.cpuUsage();
    const { idle } = this.#worker.performance.eventLoopUtilization();
    return { seed, events, busyMs: (user + system) / 1_000, idleMs: idle };
  }
}
