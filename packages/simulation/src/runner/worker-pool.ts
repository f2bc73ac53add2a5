import { availableParallelism } from 'node:os';
import { PoolWorker } from './pool-worker.ts';
import { ENDS } from './seed.ts';
import { NOTHING, sum, type Tally, tallyOf } from './tally.ts';
import type { Task } from './task.ts';

const REGISTRY = new URL('./registry.ts', import.meta.url).href;

export interface WorkerPoolOptions {
  /** Number of worker threads. @default number of cores */
  readonly workers?: number;
  /** URL of the module that exports the scenarios. @default registry.ts */
  readonly registry?: string;
  /** URLs of modules that each thread imports before anything else, such as one that installs a mutant. */
  readonly preload?: readonly string[];
  /**
   * A run without an event for this many milliseconds counts as hanging. A busy thread is measured in CPU time, and an
   * idle one in waiting time. Time in which other processes use the core is ignored.
   * @default 60,000
   */
  readonly hangTimeoutMs?: number;
}

/**
 * Pool of worker threads that run seeds.
 *
 * Guarantees: a seed is reported as violating if its run hangs, ends its thread or exhausts the memory of its thread.
 * The remaining seeds run in a new thread.
 */
export class WorkerPool implements AsyncDisposable {
  readonly size: number;
  readonly #createWorker: () => PoolWorker;
  readonly #idle: PoolWorker[] = [];
  #disposed = false;

  constructor({
    workers = availableParallelism(),
    registry,
    preload,
    hangTimeoutMs,
  }: WorkerPoolOptions = {}) {
    this.size = workers;
    const loaded = { registry: registry ?? REGISTRY, preload: preload ?? [] };
    this.#createWorker = () => new PoolWorker(loaded, hangTimeoutMs ?? 60_000);
  }

  /**
   * Runs a task on an idle thread, or on a new thread if none is idle. More than `size` parallel tasks bring no gain.
   * @throws when the scenario does not exist or a thread fails to start
   */
  async run(task: Task): Promise<Tally> {
    if (task.count === 0) return NOTHING;
    const worker = this.#idle.pop() ?? this.#createWorker();
    const answer = await worker.run(task);
    if (!('lostAt' in answer)) {
      if (this.#disposed) await worker[Symbol.asyncDispose]();
      else this.#idle.push(worker);
      return answer;
    }
    const { lostAt: seed, why } = answer;
    const violations = [{ invariant: ENDS, atMs: 0, detail: why }];
    const lost = { seed, violations, counts: {}, steps: 0, virtualMs: 0 };
    // Repeats the earlier seeds of the task, because their results were lost with the thread.
    const done = await this.run({ ...task, count: seed - task.from });
    const tally = sum(done, tallyOf(lost, 0));
    if (task.stopAtFirst) return tally;
    return sum(tally, await this.run({ ...task, from: seed + 1, count: task.from + task.count - seed - 1 }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true;
    await Promise.all(this.#idle.splice(0).map((worker) => worker[Symbol.asyncDispose]()));
  }
}
