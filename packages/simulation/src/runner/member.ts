import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Tally } from './tally.ts';
import type { Given, Loaded, Lost, Task, Told } from './task.ts';

/** How often to look whether it still gets on. */
const LOOK_MS = 500;

/** A history leaves little behind that lives on: in room for many of them, there is less to be collected at a time. */
const resourceLimits = { maxYoungGenerationSizeMb: 64 };

/** How far a thread has come, and what it has spent by then. */
interface Progress {
  readonly seed: number;
  readonly events: number;
  /** Milliseconds of CPU time. */
  readonly busyMs: number;
  /** Milliseconds in which its event loop had nothing to do. */
  readonly idleMs: number;
}

/** One thread of a crew, and the eye on it. */
export class Member implements AsyncDisposable {
  readonly #patienceMs: number;
  readonly #at = new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));
  readonly #worker: Worker;
  readonly #ready: Promise<unknown>;

  constructor(loaded: Loaded, patienceMs: number) {
    this.#patienceMs = patienceMs;
    const given: Given = { ...loaded, at: this.#at.buffer };
    // Without the flags of the program that we are in: a test runner's are not meant for the simulated code.
    this.#worker = new Worker(new URL('./worker.ts', import.meta.url), {
      workerData: given,
      execArgv: [],
      resourceLimits,
    });
    this.#ready = Promise.race([
      once(this.#worker, 'message'), // rejects with the error that the thread ends with
      once(this.#worker, 'exit').then(([code]) => {
        throw new Error(`a thread of the simulation ended with ${code} before it began`);
      }),
    ]);
    this.#ready.catch(() => undefined); // told by `ask`
  }

  /** @throws when the thread does not come up, or there is no such scenario */
  async ask(task: Task): Promise<Tally | Lost> {
    await this.#ready;
    const answer = Promise.withResolvers<Tally | Lost>();
    const lose = (why: string) => answer.resolve({ lostAt: task.from + Atomics.load(this.#at, 0), why });
    const onMessage = (told: Told) => {
      if ('tally' in told) answer.resolve(told.tally);
      else if ('error' in told) answer.reject(new Error(told.error));
    };
    const onError = (error: unknown) =>
      lose(`its thread ended with ${error instanceof Error ? error.message : String(error)}`);
    const onExit = (code: number) => lose(`it ended its thread with the code ${code}`);
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
   * A loop that never gives way, and a wait for something that is not in the simulated world, can be seen from outside
   * only: no event happens. Neither is told by how much time has passed, which on a busy machine says nothing.
   */
  #watch(hangs: (why: string) => void): Disposable {
    let last: Progress | undefined;
    const look = async () => {
      const now = await this.#progress();
      if (now.seed !== last?.seed || now.events !== last.events) last = now;
      const seconds = this.#patienceMs / 1_000;
      if (now.busyMs - last.busyMs > this.#patienceMs) hangs(`no event within ${seconds} s of CPU time`);
      else if (now.idleMs - last.idleMs > this.#patienceMs)
        hangs(`it waited for ${seconds} s for what is not in its world`);
    };
    // A thread that has ended cannot be asked, and is told of by its exit.
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
