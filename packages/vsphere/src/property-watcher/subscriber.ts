import type { BoundSession } from '../session/session-client.ts';
import type { Vim25 } from '../vim25/vim25.generated.ts';

/** Receives the property changes that one filter of a `PropertyWatcher` selects. */
export interface PropertySubscriber {
  /**
   * Returns the filter. If the filter refers to a view, first creates that view in this session. Called again for each
   * new collector, which reports every object again.
   */
  openFilter(bound: BoundSession): Promise<Vim25['PropertyFilterSpec']>;
  /**
   * Applies updates. An update of kind `enter` may be about a known object that has left the filter and entered it
   * again.
   */
  applyUpdates(updates: readonly Vim25['ObjectUpdate'][]): void;
  /** Called when every object that the filter selects has been reported. */
  onSynced(): void;
  /** Called when updates stop. They continue after `onResumed`, or start over with `openFilter`. */
  onInterrupted(error: unknown): void;
  /** Called when updates continue after an interruption and none was missed. */
  onResumed(): void;
}
