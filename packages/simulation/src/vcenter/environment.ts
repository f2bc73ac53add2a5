import type { ScheduledEvent } from '../world/event-heap.ts';
import type { VimFault } from './fault.ts';

/** Timers, ids, random behaviour and reporting for the vCenter model. */
export interface VcenterEnvironment {
  after(ms: number, act: () => void): Pick<ScheduledEvent, 'cancelled'>;
  uuid(): string;
  /** Duration of a task or of a part of a task. @param what name of the method without `_Task` */
  taskMs(what: string): number;
  /**
   * Fault of the next task, or undefined if it succeeds. If `isLate`, the task fails when it powers on a clone;
   * otherwise, it fails before it changes anything.
   */
  taskFault(what: string): { readonly fault: VimFault; readonly isLate: boolean } | undefined;
  /**
   * Duration of a guest shutdown; infinite if the guest ignores the request, undefined if the guest has no VMware
   * Tools.
   */
  shutdownMs(): number | undefined;
  /** Delay with which a collector reports a change. */
  lagMs(): number;
  /** Whether a collector rejects the version before the last one, as if the collector had dropped it. */
  forgetsVersions(): boolean;
  /** Number of finished tasks that `recentTask` keeps. */
  readonly recentTasks: number;
  /** Maximum number of objects in a response. */
  readonly maxPageSize: number;
  /** Adds an entry to the trace. */
  note(what: string): void;
  /**
   * Called for each method that the model does not support. Must end the run, because the result of the run would be
   * meaningless.
   */
  unmodelled(message: string): void;
}
