import { Deadline, unlessAborted } from '@vmwright/core';
import { objectSpec, type Ref } from '../properties/properties.ts';
import { PropertyWatcher, type PropertyWatcherOptions } from '../property-watcher/property-watcher.ts';
import type { PropertySubscriber } from '../property-watcher/subscriber.ts';
import type { BoundSession } from '../session/session-client.ts';
import type { Vim25 } from '../vim25/vim25.generated.ts';

/** Watches a property of one object until a condition is met or the object is deleted. */
class PropertyCondition implements PropertySubscriber {
  readonly #ref: Ref;
  readonly #path: string;
  readonly #isMet: (value: unknown) => boolean;
  readonly #met = Promise.withResolvers<void>();

  constructor(ref: Ref, path: string, isMet: (value: unknown) => boolean) {
    this.#ref = ref;
    this.#path = path;
    this.#isMet = isMet;
  }

  get met(): Promise<void> {
    return this.#met.promise;
  }

  async openFilter(_: BoundSession): Promise<Vim25['PropertyFilterSpec']> {
    return objectSpec([this.#ref], [this.#path]);
  }

  applyUpdates(updates: readonly Vim25['ObjectUpdate'][]): void {
    for (const { kind, changeSet } of updates) {
      const change = changeSet?.find(({ name }) => name === this.#path);
      if (kind === 'leave' || (change !== undefined && this.#isMet(change.val))) this.#met.resolve();
    }
  }

  onSynced(): void {}

  onInterrupted(): void {}

  onResumed(): void {}
}

export interface WaitForPropertyOptions extends PropertyWatcherOptions {
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs: number;
}

/**
 * Waits until a property of an object meets a condition, or the object is deleted.
 * @returns whether that happened within `timeoutMs`
 */
export async function waitForProperty(
  ref: Ref,
  path: string,
  isMet: (value: unknown) => boolean,
  { signal, timeoutMs, ...options }: WaitForPropertyOptions,
): Promise<boolean> {
  const condition = new PropertyCondition(ref, path, isMet);
  const deadline = new Deadline(options.world, timeoutMs, signal);
  await using watcher = new PropertyWatcher(options, [condition]);
  watcher.start();
  try {
    await unlessAborted(condition.met, deadline.signal);
    return true;
  } catch (error) {
    if (deadline.passed) return false;
    throw error;
  } finally {
    deadline.end();
  }
}
