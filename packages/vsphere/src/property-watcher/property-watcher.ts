import { backoffMs, JoinedSignal, wait } from '@vmwright/core';
import { StoppedError, VsphereError } from '../errors.ts';
import { FaultError } from '../faults.ts';
import { isOutage } from '../health/health.ts';
import type { Ref } from '../properties/properties.ts';
import { type BoundSession, cleanupOptions, type SessionClient } from '../session/session-client.ts';
import type { Vim25 } from '../vim25/vim25.generated.ts';
import type { VsphereWorld } from '../world.ts';
import type { PollSchedule } from './poll-schedule.ts';
import type { PropertySubscriber } from './subscriber.ts';
import { WatchedCollector } from './watched-collector.ts';

const BACKOFF = { baseMs: 200, maxMs: 30_000 };
/**
 * Back-off during an outage. Shorter than BACKOFF: a failed request costs little, and the end of an outage has to be
 * noticed soon.
 */
const OUTAGE_BACKOFF = { baseMs: 200, maxMs: 3_000 };
/** Time that a response may take beyond `maxWaitSeconds` before the connection counts as broken. */
const RESPONSE_GRACE_MS = 20_000;
/** Delay before a filter that vCenter rejected is created again. */
const REJECTED_RETRY_MS = 60_000;

export interface PropertyWatcherOptions {
  readonly world: Pick<VsphereWorld, 'after' | 'random'>;
  readonly calls: SessionClient;
  /** How long vCenter holds a request open when nothing changes, in seconds. @default 60 */
  readonly maxWaitSeconds?: number | undefined;
  /** Decides when to send the next request after a response. @default immediately */
  readonly schedule?: PollSchedule | undefined;
  /** Maximum number of objects in a response. @default vCenter's own limit */
  readonly pageSize?: number | undefined;
  /** Called with errors that the watcher retries by itself. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/**
 * Watches properties in vCenter with one property collector. The collector has a filter for each subscriber. A single
 * request (WaitForUpdatesEx) waits for changes of all filters.
 *
 * Flow: the watch starts with the first subscriber. For a later subscriber, the watcher adds a filter to the same
 * collector and aborts the waiting request. The next request reports all objects of the new filter. The other
 * subscribers are not interrupted.
 *
 * After a lost response, the watcher repeats the request with the last known version, and vCenter returns the missed
 * changes. When the session has ended, or vCenter does not know the collector any more, the watcher creates a new
 * collector. All objects are then reported again.
 *
 * If vCenter rejects a filter, the watcher retries it every minute, and the other subscribers continue. If there is no
 * other subscriber, it retries the whole watch with back-off.
 *
 * Guarantees: `onSynced` is called only after every object was reported. Between `onSynced` and `onInterrupted` all
 * changes are reported, in order.
 */
export class PropertyWatcher implements AsyncDisposable {
  readonly #options: PropertyWatcherOptions;
  readonly #subscribers = new Set<PropertySubscriber>();
  readonly #stopped = new AbortController();
  #running: Promise<void> | undefined;
  /** The collector that is watched; undefined between two collectors. */
  #collector: WatchedCollector | undefined;

  constructor(options: PropertyWatcherOptions, subscribers: readonly PropertySubscriber[] = []) {
    this.#options = options;
    for (const subscriber of subscribers) this.#subscribers.add(subscriber);
  }

  /** Adds a subscriber and starts the watch. @throws StoppedError */
  add(subscriber: PropertySubscriber): void {
    this.#stopped.signal.throwIfAborted();
    this.#subscribers.add(subscriber);
    if (this.#running === undefined) this.start();
    else if (this.#collector !== undefined)
      this.#collector.track(this.#attachOrRetry(this.#collector, subscriber));
  }

  remove(subscriber: PropertySubscriber): void {
    this.#subscribers.delete(subscriber);
    const watched = this.#collector;
    for (const [value, other] of watched?.subscribers ?? []) {
      if (watched === undefined || other !== subscriber) continue;
      watched.subscribers.delete(value);
      watched.unsynced.delete(subscriber);
      this.#dropFilter(watched, { type: 'PropertyFilter', value });
    }
  }

  start(): void {
    this.#stopped.signal.throwIfAborted();
    this.#running ??= this.#run();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const reason = new StoppedError('the vSphere client was stopped');
    this.#stopped.abort(reason);
    await this.#running;
    for (const subscriber of this.#subscribers) subscriber.onInterrupted(reason);
  }

  async #run(): Promise<void> {
    const { world } = this.#options;
    for (let failures = 0; !this.#stopped.signal.aborted; ) {
      const { signal } = this.#stopped;
      const resetBackoff = () => {
        failures = 0;
      };
      try {
        await this.#watch(signal, resetBackoff);
      } catch (error) {
        if (signal.aborted) return;
        this.#options.onError?.(error);
        const backoff = isOutage(error) ? OUTAGE_BACKOFF : BACKOFF;
        await wait(world, backoffMs(world, ++failures, backoff), signal).catch(() => undefined);
      }
    }
  }

  /** Creates a collector and watches it until an error. */
  async #watch(signal: AbortSignal, resetBackoff: () => void): Promise<never> {
    const ended = new AbortController();
    using joined = new JoinedSignal(signal, ended.signal);
    const both = joined.signal;
    const bound = await this.#options.calls.bind(both);
    const watched = new WatchedCollector(bound, await createCollector(bound), ended, both);
    this.#collector = watched;
    try {
      for (const subscriber of [...this.#subscribers])
        if (!(await this.#attach(watched, subscriber))) watched.track(this.#retryAttach(watched, subscriber));
      let version = '';
      for (let isFirst = true; ; ) {
        // The filters of the unsynced subscribers already exist, so the response to the next request contains all
        // objects of these subscribers.
        const unsynced = [...watched.unsynced];
        const fetched = await this.#fetchUpdates(watched, version, isFirst || unsynced.length > 0);
        version = fetched.version;
        if (!fetched.isRetried)
          for (const subscriber of unsynced)
            if (watched.unsynced.delete(subscriber) && this.#subscribers.has(subscriber))
              subscriber.onSynced();
        // The first response does not reset the back-off. Otherwise, if the second request always fails, the watch
        // would list all objects repeatedly without a delay.
        if (!isFirst) resetBackoff();
        isFirst = false;
        if (watched.unsynced.size === 0) await this.#waitForNextPoll(watched, fetched.hasUpdates);
      }
    } catch (error) {
      this.#collector = undefined;
      for (const subscriber of watched.subscribers.values()) subscriber.onInterrupted(error);
      await watched.end();
      // vCenter removes a collector when its session ends. In a valid session, vCenter would keep collecting changes
      // for a collector that is not destroyed.
      const isSessionValid = !(error instanceof FaultError && error.code === 'NOT_AUTHENTICATED');
      const destroyed = isSessionValid ? destroyCollector(bound, watched.collector) : undefined;
      // Awaited only if the watcher was stopped. Otherwise, an unreachable vCenter would delay the next attempt.
      if (signal.aborted) await destroyed;
      throw error;
    }
  }

  async #attachOrRetry(watched: WatchedCollector, subscriber: PropertySubscriber): Promise<void> {
    if (!(await this.#attach(watched, subscriber))) await this.#retryAttach(watched, subscriber);
  }

  /** Sends a rejected filter again until vCenter accepts it. The other subscribers keep receiving updates. */
  async #retryAttach(watched: WatchedCollector, subscriber: PropertySubscriber): Promise<void> {
    do {
      await wait(this.#options.world, REJECTED_RETRY_MS, watched.signal).catch(() => undefined);
      if (watched.signal.aborted || !this.#subscribers.has(subscriber)) return;
    } while (!(await this.#attach(watched, subscriber)));
  }

  /**
   * Creates the filter of a subscriber.
   * @returns false when vCenter rejects the filter, but the collector stays in use because it has other subscribers
   */
  async #attach(watched: WatchedCollector, subscriber: PropertySubscriber): Promise<boolean> {
    const { bound, collector, signal } = watched;
    try {
      const spec = await subscriber.openFilter(bound);
      // With `partialUpdates: false` vCenter sends the whole value of a changed property.
      const filter = await bound.call('CreateFilter', collector, { spec, partialUpdates: false }, { signal });
      if (this.#subscribers.has(subscriber)) watched.add(filter.value, subscriber);
      else this.#dropFilter(watched, filter);
      return true;
    } catch (error) {
      if (signal.aborted || !this.#subscribers.has(subscriber)) return true; // the result is no longer needed
      // If one filter is rejected, for example for a missing permission, the other subscribers must still get updates.
      const isFilterRejected = error instanceof FaultError && error.code !== 'NOT_AUTHENTICATED';
      if (isFilterRejected && this.#subscribers.size > 1) {
        subscriber.onInterrupted(error);
        this.#options.onError?.(error);
        return false;
      }
      watched.fail(error);
      return true;
    }
  }

  #dropFilter({ bound }: WatchedCollector, filter: Ref): void {
    void bound.call('DestroyPropertyFilter', filter, {}, cleanupOptions()).catch(() => undefined);
  }

  /** Fetches and applies all updates since a version, in as many responses as vCenter needs. */
  async #fetchUpdates(watched: WatchedCollector, from: string, isImmediate: boolean): Promise<Fetched> {
    let fetched: Fetched = { version: from, hasUpdates: false, isRetried: false };
    for (;;) {
      const { set, isRetried } = await this.#waitForUpdates(watched, fetched.version, isImmediate);
      for (const { filter, objectSet } of set?.filterSet ?? []) watched.apply(filter.value, objectSet ?? []);
      fetched = {
        version: set?.version ?? fetched.version,
        hasUpdates: fetched.hasUpdates || set !== undefined,
        isRetried: fetched.isRetried || isRetried,
      };
      if (!set?.truncated) return fetched;
    }
  }

  /**
   * Sends WaitForUpdatesEx, and repeats it with the same version until a response arrives.
   * @returns the response. `isRetried` is true if an earlier request failed or was aborted. vCenter may then send the
   * response to that earlier request again, without any later changes
   */
  async #waitForUpdates(
    watched: WatchedCollector,
    version: string,
    isImmediate: boolean,
  ): Promise<UpdateResponse> {
    const { world, maxWaitSeconds = 60, pageSize, onError } = this.#options;
    const { bound, collector, signal, subscribers } = watched;
    let isAborted = false;
    for (let failures = 0; ; ) {
      signal.throwIfAborted();
      // After a failure, ask for an immediate response: the subscribers count as interrupted until it arrives.
      const seconds = isImmediate || isAborted || failures > 0 ? 0 : maxWaitSeconds;
      const options = {
        maxWaitSeconds: seconds,
        ...(pageSize !== undefined && { maxObjectUpdates: pageSize }),
      };
      using joined = new JoinedSignal(signal, watched.subscriberAdded);
      const waiting = seconds === 0 ? signal : joined.signal;
      const limits = { signal: waiting, lasting: true, timeoutMs: seconds * 1_000 + RESPONSE_GRACE_MS };
      try {
        const set = await bound.call('WaitForUpdatesEx', collector, { version, options }, limits);
        if (failures > 0) for (const subscriber of subscribers.values()) this.#resume(watched, subscriber);
        return { set, isRetried: isAborted || failures > 0 };
      } catch (error) {
        signal.throwIfAborted();
        if (waiting.aborted) {
          isAborted = true;
          continue;
        }
        if (error instanceof FaultError || !(error instanceof VsphereError && error.retryable)) throw error;
        onError?.(error);
        for (const subscriber of subscribers.values()) subscriber.onInterrupted(error);
        await wait(world, backoffMs(world, ++failures, OUTAGE_BACKOFF), signal);
      }
    }
  }

  #resume(watched: WatchedCollector, subscriber: PropertySubscriber): void {
    if (!watched.unsynced.has(subscriber)) subscriber.onResumed();
  }

  /** Waits until the next request is due, or a subscriber was added. */
  async #waitForNextPoll({ signal, subscriberAdded }: WatchedCollector, hadUpdates: boolean): Promise<void> {
    using joined = new JoinedSignal(signal, subscriberAdded);
    await this.#options.schedule?.waitForNextPoll(hadUpdates, joined.signal).catch(() => undefined);
    signal.throwIfAborted();
  }
}

interface UpdateResponse {
  readonly set: Vim25['UpdateSet'] | undefined;
  readonly isRetried: boolean;
}

interface Fetched {
  readonly version: string;
  readonly hasUpdates: boolean;
  readonly isRetried: boolean;
}

function createCollector(bound: BoundSession): Promise<Ref> {
  return bound.call('CreatePropertyCollector', bound.login.content.propertyCollector, {});
}

async function destroyCollector(bound: BoundSession, collector: Ref): Promise<void> {
  await bound.call('DestroyPropertyCollector', collector, {}, cleanupOptions()).catch(() => undefined);
}
