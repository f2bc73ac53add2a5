import type { Ref } from '../properties/properties.ts';
import type { BoundSession } from '../session/session-client.ts';
import type { Vim25 } from '../vim25/vim25.generated.ts';
import type { PropertySubscriber } from './subscriber.ts';

type Updates = readonly Vim25['ObjectUpdate'][];

/** A property collector in vCenter with the filters of its subscribers. */
export class WatchedCollector {
  readonly bound: BoundSession;
  readonly collector: Ref;
  /** The subscribers by the reference of their filter. */
  readonly subscribers = new Map<string, PropertySubscriber>();
  /** Subscribers with a new filter, for which vCenter has not reported every object yet. */
  readonly unsynced = new Set<PropertySubscriber>();
  /** Aborts when the collector is no longer used. */
  readonly signal: AbortSignal;
  readonly #ended: AbortController;
  readonly #pending = new Set<Promise<void>>();
  /**
   * Updates of unknown filters: WaitForUpdatesEx may report a filter before CreateFilter has returned its reference.
   */
  readonly #earlyUpdates = new Map<string, Updates[]>();
  #subscriberAdded = new AbortController();

  /**
   * @param ended AbortController that ends the use of the collector
   * @param signal signal of the calls that use the collector; aborts when `ended` aborts or the watcher is stopped
   */
  constructor(bound: BoundSession, collector: Ref, ended: AbortController, signal: AbortSignal) {
    this.bound = bound;
    this.collector = collector;
    this.signal = signal;
    this.#ended = ended;
  }

  /**
   * Aborts when a subscriber is added. This ends the waiting request, because only a later request reports all objects
   * of the new filter.
   */
  get subscriberAdded(): AbortSignal {
    return this.#subscriberAdded.signal;
  }

  add(filter: string, subscriber: PropertySubscriber): void {
    this.subscribers.set(filter, subscriber);
    for (const updates of this.#earlyUpdates.get(filter) ?? []) subscriber.applyUpdates(updates);
    this.#earlyUpdates.delete(filter);
    this.unsynced.add(subscriber);
    this.#subscriberAdded.abort();
    this.#subscriberAdded = new AbortController();
  }

  /** Passes updates to the subscriber of the filter. If the filter has no subscriber yet, keeps them for `add`. */
  apply(filter: string, updates: Updates): void {
    const subscriber = this.subscribers.get(filter);
    if (subscriber !== undefined) subscriber.applyUpdates(updates);
    else if (this.#pending.size > 0)
      this.#earlyUpdates.set(filter, [...(this.#earlyUpdates.get(filter) ?? []), updates]);
  }

  /** Registers work that `end` waits for. */
  track(work: Promise<void>): void {
    const tracked = work.finally(() => {
      this.#pending.delete(tracked);
      // No filter is being created any more. Updates that are still kept belong to filters that were removed.
      if (this.#pending.size === 0) this.#earlyUpdates.clear();
    });
    this.#pending.add(tracked);
  }

  /** Ends the use of the collector with an error. */
  fail(error: unknown): void {
    this.#ended.abort(error);
  }

  /**
   * Ends the use of the collector and waits for tracked work, which creates filters. Otherwise, that work could replace
   * the view that a subscriber has created for its filter of the next collector.
   */
  async end(): Promise<void> {
    this.#ended.abort(new Error('the property collector is no longer used'));
    await Promise.allSettled(this.#pending);
  }
}
