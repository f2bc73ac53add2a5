import type { ApiServer } from '../apiserver/api-server.ts';
import type { AnyDeclaredKind } from '../apiserver/resource.ts';
import type { Traffic } from '../scenario/traffic.ts';
import type { Simulation } from '../world/simulation.ts';
import type { Outside } from './outside.ts';

/** What invariants look at: the world as it is, not as anybody in it sees it. */
export interface Truth {
  readonly simulation: Simulation;
  readonly server: ApiServer;
  /** Whose objects stand for something outside. */
  readonly kind: AnyDeclaredKind;
  readonly outside: Outside;
  readonly traffic: Traffic;
}

/** A promise that a scenario holds a world to. */
export interface Invariant {
  readonly name: string;
  /**
   * Must hold at every instant. It listens for changes, since what does not change stays as good as it was: cheaper
   * than to look after each step, and nothing is missed in between.
   */
  readonly watch?: (truth: Truth, violated: (detail: string) => void) => void;
  /** Must hold once all has healed and come to rest. @returns a sentence for each violation */
  readonly healed?: (truth: Truth) => Iterable<string>;
}
