import { availableParallelism } from 'node:os';
import { Member } from './member.ts';
import { ENDS } from './seed.ts';
import { NOTHING, sum, type Tally, tallyOf } from './tally.ts';
import type { Task } from './task.ts';

const REGISTRY = new URL('./registry.ts', import.meta.url).href;

export interface CrewOptions {
  /** @default as many as there are cores */
  readonly workers?: number;
  /** The module, by its URL, that has the scenarios by their names. @default registry.ts */
  readonly registry?: string;
  /**
   * Modules, by their URLs, that each thread imports before all else: one that plants a bug changes there what the
   * runtime's modules say.
   */
  readonly before?: readonly string[];
  /**
   * Milliseconds without an event after which a history counts as one that never ends: of CPU time where its thread is
   * busy, of waiting where it is idle. Time in which other programs have the core does not count. @default 60,000
   */
  readonly patienceMs?: number;
}

/**
 * Threads that run histories.
 *
 * Guarantees: whatever a history does to its thread (loops, ends it, eats its memory) is a violation of its seed, and the
 * others' go on in a new thread.
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
   * Runs some seeds on a thread that has nothing to do; at most `size` at a time make sense.
   * @throws when there is no such scenario, or a thread does not come up
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
    const done = await this.run({ ...task, count: seed - task.from }); // what it has told nobody of: the same again
    const tally = sum(done, tallyOf(lost, 0));
    if (task.stopAtFirst) return tally;
    return sum(tally, await this.run({ ...task, from: seed + 1, count: task.from + task.count - seed - 1 }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true;
    await Promise.all(this.#idle.splice(0).map((member) => member[Symbol.asyncDispose]()));
  }
}
