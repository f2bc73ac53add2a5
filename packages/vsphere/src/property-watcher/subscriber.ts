import type { BoundSession } from '../session/session-client.ts';
import type { Vim25 } from '../vim25/vim25.generated.ts';

/** Receives the property changes that one filter of a `PropertyWatcher` selects. */
export interface PropertySubscriber {
  /**
   * Returns the filter and creates what it refers to (a view, say) in this session. Called again for each new collector;
   * vCenter then reports every object from the start.
   */
  openFilter(bound: BoundSession): Promise<Vim25['PropertyFilterSpec']>;
  /** Applies updates. `enter` may name a known object: vCenter also sends it for one that it had lost sight of. */
  applyUpdates(updates: readonly Vim25['ObjectUpdate'][]): void;
  /** Called when every object that the filter selects has been reported. */
  onSynced(): void;
  /** Called when updates stop. They continue after `onResumed`, or start over with `openFilter`. */
  onInterrupted(error: unknown): void;
  /** Called when updates continue after an interruption and none was missed. */
  onResumed(): void;
}
