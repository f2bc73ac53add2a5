import { availableParallelism } from 'node:os';
import { Member } from './member.ts';
import { ENDS } from './seed.ts';
import { NOTHING, sum, type Tally, tallyOf } from './tally.ts';
import type { Task } from './task.ts';

const REGISTRY = new URL('./registry.ts', import.meta.url).href;

export interface CrewOptions {
  /** Number of worker threads. @default number of cores */
  readonly workers?: number;
  /** URL of the module that exports the scenarios. @default registry.ts */
  readonly registry?: string;
  /** URLs of modules that each thread imports before anything else, such as one that installs a mutant. */
  readonly before?: readonly string[];
  /**
   * Milliseconds without an event after which a run counts as hanging: CPU time while its thread is busy,
   * waiting time while it is idle. Time in which other processes use the core does not count. @default 60,000
   */
  readonly patienceMs?: number;
}

/**
 * Pool of worker threads that run seeds.
 *
 * Guarantees: if a run hangs, ends its thread or exhausts its memory, that is a violation of its seed, and
 * the remaining seeds continue in a new thread.
 */
export class Crew implements AsyncDisposable {
  readonly size: number;
  readonly #member: () => Member;
  readonly #idle: Member[] = [];
  #disposed = false;

  constructor({ workers = availableParallelism(), registry, before, patienceMs }: CrewOptions = {}) {
    this.size = workers;
    const loaded = { registry: registry ?? REGISTRY, before: before ?? [] };
    this.#member = () => new Member(loaded, patienceMs ?? 60_000);
  }

  /**
   * Runs seeds on an idle thread. At most `size` tasks run usefully in parallel.
   * @throws when the scenario does not exist or a thread fails to start
   */
  async run(task: Task): Promise<Tally> {
    if (task.count === 0) return NOTHING;
    const member = this.#idle.pop() ?? this.#member();
    const answer = await member.ask(task);
    if (!('lostAt' in answer)) {
      if (this.#disposed) await member[Symbol.asyncDispose]();
      else this.#idle.push(member);
      return answer;
    }
    const { lostAt: seed, why } = answer;
    const violations = [{ invariant: ENDS, atMs: 0, detail: why }];
    const lost = { seed, violations, counts: {}, steps: 0, virtualMs: 0 };
    const done = await this.run({ ...task, count: seed - task.from }); // repeats the seeds whose results were lost with the thread
    const tally = sum(done, tallyOf(lost, 0));
    if (task.stopAtFirst) return tally;
    return sum(tally, await this.run({ ...task, from: seed + 1, count: task.from + task.count - seed - 1 }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true;
    await Promise.all(this.#idle.splice(0).map((member) => member[Symbol.asyncDispose]()));
  }
}
