import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Tally } from './tally.ts';
import type { Given, Loaded, Lost, Task, Told } from './task.ts';

/** How often to look whether it still gets on. */
const LOOK_MS = 500;

/** A history leaves little behind that lives on: in room for many of them, there is less to be collected at a time. */
const resourceLimits = { maxYoungGenerationSizeMb: 64 };

/** One thread of a crew, and the eye on it. */
export class Member implements AsyncDisposable {
  readonly #patienceMs: number;
  readonly #at = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
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
    const look = this.#watch(() => {
      lose(`it did not end within ${this.#patienceMs / 1_000} s of real time`);
      void this.#worker.terminate();
    });
    this.#worker.on('message', onMessage).on('error', onError).on('exit', onExit);
    this.#worker.postMessage(task);
    try {
      return await answer.promise;
    } finally {
      clearInterval(look);
      this.#worker.off('message', onMessage).off('error', onError).off('exit', onExit);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate();
  }

  /** A loop that never gives way can be seen from outside only: the number of seeds done stays the same. */
  #watch(hangs: () => void): NodeJS.Timeout {
    let last = { at: -1, since: performance.now() };
    return setInterval(() => {
      const at = Atomics.load(this.#at, 0);
      if (at !== last.at) last = { at, since: performance.now() };
      else if (performance.now() - last.since > this.#patienceMs) hangs();
    }, LOOK_MS);
  }
}
