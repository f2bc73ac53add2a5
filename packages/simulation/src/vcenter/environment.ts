import type { Planned } from '../world/agenda.ts';
import type { VimFault } from './fault.ts';

/** What vCenter takes from the world around it. */
export interface VcenterEnvironment {
  after(ms: number, act: () => void): Pick<Planned, 'cancelled'>;
  uuid(): string;
  /** How long a task takes, or a part of one. @param what the method, without `_Task` */
  taskMs(what: string): number;
  /** How a task is to fail, where it is: before it has done anything, or as it powers on what it has made. */
  taskFault(what: string): { readonly fault: VimFault; readonly isLate: boolean } | undefined;
  /** How long a guest takes to shut down; infinite where it does not obey, undefined where it has no tools. */
  shutdownMs(): number | undefined;
  /** How much later than it happens a collector tells of something. */
  lagMs(): number;
  /** Whether a collector does not know the last version but one any more. */
  forgetsVersions(): boolean;
  /** How many tasks that have ended are still among the recent ones. */
  readonly recentTasks: number;
  /** At most so many objects an answer. */
  readonly longestPage: number;
  note(what: string): void;
  /** A client does what nobody has modelled. */
  unmodelled(sentence: string): void;
}
