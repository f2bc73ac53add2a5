import { Deadline, unlessAborted } from '@vmwright/core';
import type { Bound } from '../calls/calls.ts';
import { PropertyWatcher, type PropertyWatcherOptions } from '../feed/feed.ts';
import type { Source } from '../feed/source.ts';
import { objectSpec, type Ref } from '../properties/properties.ts';
import type { Vim25 } from '../vim25/vim25.generated.ts';

/** Waits for a property of one object, as vCenter tells of it. */
class Watched implements Source {
  readonly #ref: Ref;
  readonly #path: string;
  readonly #isIt: (value: unknown) => boolean;
  readonly #reached = Promise.withResolvers<void>();

  constructor(ref: Ref, path: string, isIt: (value: unknown) => boolean) {
    this.#ref = ref;
    this.#path = path;
    this.#isIt = isIt;
  }

  get reached(): Promise<void> {
    return this.#reached.promise;
  }

  async open(_: Bound): Promise<Vim25['PropertyFilterSpec']> {
    return objectSpec([this.#ref], [this.#path]);
  }

  apply(updates: readonly Vim25['ObjectUpdate'][]): void {
    for (const { kind, changeSet } of updates) {
      const change = changeSet?.find(({ name }) => name === this.#path);
      if (kind === 'leave' || (change !== undefined && this.#isIt(change.val))) this.#reached.resolve();
    }
  }

  settled(): void {}

  interrupted(): void {}

  resumed(): void {}
}

export interface UntilOptions extends PropertyWatcherOptions {
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs: number;
}

/** Whether a property of an object, or its end, was reached in time. */
export async function until(
  ref: Ref,
  path: string,
  isIt: (value: unknown) => boolean,
  { signal, timeoutMs, ...options }: UntilOptions,
): Promise<boolean> {
  const watched = new Watched(ref, path, isIt);
  const deadline = new Deadline(options.world, timeoutMs, signal);
  await using feed = new PropertyWatcher(options, [watched]);
  feed.start();
  try {
    await unlessAborted(watched.reached, deadline.signal);
    return true;
  } catch (error) {
    if (deadline.passed) return false;
    throw error;
  } finally {
    deadline.end();
  }
}
