import type { VimFault } from './fault.ts';
import type { Registry } from './registry.ts';
import { ListView } from './view.ts';
import { type Ref, val } from './xml.ts';

/** What vCenter is asked to do and takes its time for. */
export interface Task {
  readonly ref: Ref;
  /** The method, without `_Task`. */
  readonly what: string;
  /** What is worked on. */
  readonly on: Ref;
  state: 'running' | 'success' | 'error';
  /** How it failed. */
  fault: VimFault | undefined;
}

/** All tasks, also those that have ended. */
export class Tasks {
  /** Those that run, and those that have ended lately: the property `recentTask` of vCenter's TaskManager. */
  readonly recent: ListView;
  readonly #registry: Registry;
  readonly #mostEnded: number;
  readonly #ended: Ref[] = [];
  readonly #onBegin: ((task: Task) => void)[] = [];
  readonly #onEnd: ((task: Task) => void)[] = [];
  /** What a task is at work on, so that no other can be. */
  readonly #locks = new Map<string, Task>();

  /** @param mostEnded how many that have ended are among the recent ones */
  constructor(registry: Registry, manager: Ref, mostEnded: number) {
    this.#registry = registry;
    this.#mostEnded = mostEnded;
    this.recent = new ListView(manager, registry);
  }

  begin(what: string, on: Ref): Task {
    const registry = this.#registry;
    return registry.together(() => {
      const ref = { type: 'Task', value: registry.newId('task') };
      const task: Task = { ref, what, on, state: 'running', fault: undefined };
      const entity = registry.add(ref, ref.value);
      registry.set(entity, 'info.state', val.word('TaskInfoState', 'running'));
      this.recent.add(entity);
      for (const tell of this.#onBegin) tell(task);
      return task;
    });
  }

  succeed(task: Task, result?: Ref): void {
    this.#end(task, 'success', { 'info.result': result && val.ref(result) });
  }

  fail(task: Task, fault: VimFault): void {
    task.fault = fault;
    this.#end(task, 'error', { 'info.error': val.word('LocalizedMethodFault', fault.localized) });
  }

  /** Nobody else works on it until the task has ended. @returns who does already */
  lock(id: string, task: Task): Task | undefined {
    const other = this.#locks.get(id);
    if (other !== undefined) return other;
    this.#locks.set(id, task);
    return undefined;
  }

  /** Whether something is worked on. */
  isLocked(id: string): boolean {
    return this.#locks.has(id);
  }

  onBegin(listener: (task: Task) => void): void {
    this.#onBegin.push(listener);
  }

  onEnd(listener: (task: Task) => void): void {
    this.#onEnd.push(listener);
  }

  #end(task: Task, state: 'success' | 'error', values: Readonly<Record<string, string | undefined>>): void {
    if (task.state !== 'running') return;
    task.state = state;
    for (const [id, holder] of this.#locks) if (holder === task) this.#locks.delete(id);
    this.#registry.together(() => {
      const entity = this.#registry.get(task.ref);
      if (entity === undefined) return;
      for (const path in values) this.#registry.set(entity, path, values[path]);
      this.#registry.set(entity, 'info.state', val.word('TaskInfoState', state));
      this.#ended.push(task.ref);
      const old = this.#ended.length > this.#mostEnded ? this.#ended.shift() : undefined;
      if (old !== undefined) this.recent.remove(old);
    });
    for (const tell of this.#onEnd) tell(task);
  }
}
