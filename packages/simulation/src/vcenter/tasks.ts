import type { VimFault } from './fault.ts';
import type { Registry } from './registry.ts';
import { ListView } from './view.ts';
import { type Ref, val } from './xml.ts';

/** A vCenter task. */
export interface Task {
  readonly ref: Ref;
  /** The method without `_Task`. */
  readonly what: string;
  /** The object that the task works on. */
  readonly on: Ref;
  state: 'running' | 'success' | 'error';
  /** The fault with which the task failed. */
  fault: VimFault | undefined;
}

/** All tasks, running and finished. */
export class Tasks {
  /** Running and recently finished tasks: the property `recentTask` of the TaskManager. */
  readonly recent: ListView;
  readonly #registry: Registry;
  readonly #maxEnded: number;
  readonly #ended: Ref[] = [];
  readonly #onBegin: ((task: Task) => void)[] = [];
  readonly #onEnd: ((task: Task) => void)[] = [];
  /** Running tasks that hold a lock, by the id of the locked object. */
  readonly #locks = new Map<string, Task>();

  /** @param maxEnded number of finished tasks that `recent` keeps */
  constructor(registry: Registry, manager: Ref, maxEnded: number) {
    this.#registry = registry;
    this.#maxEnded = maxEnded;
    this.recent = new ListView(manager, registry);
  }

  begin(what: string, on: Ref): Task {
    const registry = this.#registry;
    return registry.batch(() => {
      const ref = { type: 'Task', value: registry.newId('task') };
      const task: Task = { ref, what, on, state: 'running', fault: undefined };
      const entity = registry.add(ref, ref.value);
      registry.set(entity, 'info.state', val.word('TaskInfoState', 'running'));
      this.recent.add(entity);
      for (const listener of this.#onBegin) listener(task);
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

  /** Locks an object for a task until the task ends. @returns the task that already holds the lock, if any */
  lock(id: string, task: Task): Task | undefined {
    const other = this.#locks.get(id);
    if (other !== undefined) return other;
    this.#locks.set(id, task);
    return undefined;
  }

  /** Whether a running task holds the lock of the object. */
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
    this.#registry.batch(() => {
      const entity = this.#registry.get(task.ref);
      if (entity === undefined) return;
      for (const path in values) this.#registry.set(entity, path, values[path]);
      this.#registry.set(entity, 'info.state', val.word('TaskInfoState', state));
      this.#ended.push(task.ref);
      const old = this.#ended.length > this.#maxEnded ? this.#ended.shift() : undefined;
      if (old !== undefined) this.recent.remove(old);
    });
    for (const listener of this.#onEnd) listener(task);
  }
}
