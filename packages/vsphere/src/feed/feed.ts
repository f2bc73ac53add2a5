import { backoffMs, JoinedSignal, wait } from '@vmwright/core';
import { type Bound, type Calls, regardless } from '../calls/calls.ts';
import { StoppedError, VsphereError } from '../errors.ts';
import { FaultError } from '../faults.ts';
import { isOutage } from '../health/health.ts';
import type { Ref } from '../properties/properties.ts';
import type { Vim25 } from '../vim25/vim25.generated.ts';
import type { VsphereWorld } from '../world.ts';
import { Live } from './live.ts';
import type { Pace } from './pace.ts';
import type { Source } from './source.ts';

const DELAYS = { baseMs: 200, maxMs: 30_000 };
/** While vCenter cannot be used at all an attempt costs little, and whoever waits for its return wants to know soon. */
const OUTAGE_DELAYS = { baseMs: 200, maxMs: 3_000 };
/** How much later than agreed an answer may come before the connection is taken for dead. */
const GRACE_MS = 20_000;
/** After which a source that vCenter has refused is tried again. */
const REFUSED_MS = 60_000;

export interface PropertyWatcherOptions {
  readonly world: Pick<VsphereWorld, 'after' | 'random'>;
  readonly calls: Calls;
  /** How long vCenter waits for a change before it answers that there was none. @default 60 */
  readonly maxWaitSeconds?: number | undefined;
  /** When it asks again after an answer. @default at once */
  readonly pace?: Pace | undefined;
  /** At most so many objects an answer. @default vCenter's own limit */
  readonly pageSize?: number | undefined;
  /** Told of what goes wrong; the feed goes on. */
  readonly troubled?: ((error: unknown) => void) | undefined;
}

/**
 * What changes in vCenter, as it changes: one collector, with a filter for each source, and one call that waits.
 *
 * Flow: it begins with the first source. One that comes later is added to the collector, and the others go on as they
 * are: the call that waits is given up, and the next one brings everything of the new filter. A call whose answer was
 * lost is repeated with the version that is in hand, and brings what was missed. When the session has ended, or vCenter
 * does not know the collector any more, a new collector is made, and everything is told from the start. A source that
 * vCenter refuses is tried again every minute, beside the others.
 *
 * Guarantees: `settled` comes after a complete telling, never after a part of one; between it and `interrupted`
 * everything is told in order.
 */
export class PropertyWatcher implements AsyncDisposable {
  readonly #options: PropertyWatcherOptions;
  readonly #sources = new Set<Source>();
  readonly #stopped = new AbortController();
  #running: Promise<void> | undefined;
  /** The collector that is followed; undefined while there is none. */
  #live: Live | undefined;

  constructor(options: PropertyWatcherOptions, sources: readonly Source[] = []) {
    this.#options = options;
    for (const source of sources) this.#sources.add(source);
  }

  add(source: Source): void {
    this.#stopped.signal.throwIfAborted();
    this.#sources.add(source);
    if (this.#running === undefined) this.start();
    else if (this.#live !== undefined) this.#live.join(this.#join(this.#live, source));
  }

  remove(source: Source): void {
    this.#sources.delete(source);
    const live = this.#live;
    for (const [value, other] of live?.filters ?? []) {
      if (live === undefined || other !== source) continue;
      live.filters.delete(value);
      live.fresh.delete(source);
      this.#dropFilter(live, { type: 'PropertyFilter', value });
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
    for (const source of this.#sources) source.interrupted(reason);
  }

  async #run(): Promise<void> {
    const { world } = this.#options;
    for (let failures = 0; !this.#stopped.signal.aborted; ) {
      const { signal } = this.#stopped;
      const wasTold = () => {
        failures = 0;
      };
      try {
        await this.#follow(signal, wasTold);
      } catch (error) {
        if (signal.aborted) return;
        this.#options.troubled?.(error);
        const delays = isOutage(error) ? OUTAGE_DELAYS : DELAYS;
        await wait(world, backoffMs(world, ++failures, delays), signal).catch(() => undefined);
      }
    }
  }

  async #follow(signal: AbortSignal, wasTold: () => void): Promise<never> {
    const over = new AbortController();
    using joined = new JoinedSignal(signal, over.signal);
    const both = joined.signal;
    const bound = await this.#options.calls.bind(both);
    const live = new Live(bound, await newCollector(bound), over, both);
    this.#live = live;
    try {
      for (const source of [...this.#sources])
        if (!(await this.#attach(live, source))) live.join(this.#retry(live, source));
      let version = '';
      for (let isFirst = true; ; ) {
        // Those whose filters are there before the call: what is told then has all that there is of them.
        const fresh = [...live.fresh];
        const told = await this.#all(live, version, isFirst || fresh.length > 0);
        version = told.version;
        if (!told.isRepeated)
          for (const source of fresh)
            if (live.fresh.delete(source) && this.#sources.has(source)) source.settled();
        // Not after the first answer: a second call that fails each time would list everything again without a back-off.
        if (!isFirst) wasTold();
        isFirst = false;
        if (live.fresh.size === 0) await this.#rest(live, told.hasNews);
      }
    } catch (error) {
      this.#live = undefined;
      for (const source of live.filters.values()) source.interrupted(error);
      await live.end();
      // Where it is not the session that has ended, it would be kept, and told of everything, for as long as that lasts.
      const isKept = !(error instanceof FaultError && error.code === 'NOT_AUTHENTICATED');
      const gone = isKept ? destroy(bound, live.collector) : undefined;
      if (signal.aborted) await gone; // else nobody waits for a vCenter that may not answer
      throw error;
    }
  }

  /** Adds a source that has come while the collector is followed. */
  async #join(live: Live, source: Source): Promise<void> {
    if (!(await this.#attach(live, source))) await this.#retry(live, source);
  }

  /** Tries a source that vCenter has refused until it is not refused any more. The others are told everything. */
  async #retry(live: Live, source: Source): Promise<void> {
    do {
      await wait(this.#options.world, REFUSED_MS, live.signal).catch(() => undefined);
      if (live.signal.aborted || !this.#sources.has(source)) return;
    } while (!(await this.#attach(live, source)));
  }

  /** Gives a source its filter. @returns false where vCenter refuses that, and only that */
  async #attach(live: Live, source: Source): Promise<boolean> {
    const { bound, collector, signal } = live;
    try {
      const spec = await source.open(bound);
      // Whole properties, not what changed in them.
      const filter = await bound.call('CreateFilter', collector, { spec, partialUpdates: false }, { signal });
      if (this.#sources.has(source)) live.add(filter.value, source);
      else this.#dropFilter(live, filter);
      return true;
    } catch (error) {
      if (signal.aborted || !this.#sources.has(source)) return true; // it is nobody's affair any more
      // What may not be looked at keeps nobody from looking at the rest, if there is one.
      const isItsOwn = error instanceof FaultError && error.code !== 'NOT_AUTHENTICATED';
      if (isItsOwn && this.#sources.size > 1) {
        source.interrupted(error);
        this.#options.troubled?.(error);
        return false;
      }
      live.fail(error);
      return true;
    }
  }

  #dropFilter({ bound }: Live, filter: Ref): void {
    void bound.call('DestroyPropertyFilter', filter, {}, regardless()).catch(() => undefined);
  }

  /** All that vCenter has to tell since a version, in however many answers. */
  async #all(live: Live, from: string, isAtOnce: boolean): Promise<Told> {
    let told: Told = { version: from, hasNews: false, isRepeated: false };
    for (;;) {
      const { set, isRepeated } = await this.#next(live, told.version, isAtOnce);
      for (const { filter, objectSet } of set?.filterSet ?? []) live.apply(filter.value, objectSet ?? []);
      told = {
        version: set?.version ?? told.version,
        hasNews: told.hasNews || set !== undefined,
        isRepeated: told.isRepeated || isRepeated,
      };
      if (!set?.truncated) return told;
    }
  }

  /**
   * The next answer, asked for again with the same version until it comes.
   * @returns `isRepeated` where a call before it was given up: its answer may be that one's, which lacks what came since
   */
  async #next(live: Live, version: string, isAtOnce: boolean): Promise<Answered> {
    const { world, maxWaitSeconds = 60, pageSize, troubled } = this.#options;
    const { bound, collector, signal, filters } = live;
    let isNudged = false;
    for (let failures = 0; ; ) {
      signal.throwIfAborted();
      const seconds = isAtOnce || isNudged ? 0 : maxWaitSeconds;
      const options = {
        maxWaitSeconds: seconds,
        ...(pageSize !== undefined && { maxObjectUpdates: pageSize }),
      };
      using joined = new JoinedSignal(signal, live.nudged);
      const waiting = seconds === 0 ? signal : joined.signal;
      const limits = { signal: waiting, lasting: true, timeoutMs: seconds * 1_000 + GRACE_MS };
      try {
        const set = await bound.call('WaitForUpdatesEx', collector, { version, options }, limits);
        if (failures > 0) for (const source of filters.values()) this.#resume(live, source);
        return { set, isRepeated: isNudged || failures > 0 };
      } catch (error) {
        signal.throwIfAborted();
        if (waiting.aborted) {
          isNudged = true;
          continue;
        }
        if (error instanceof FaultError || !(error instanceof VsphereError && error.retryable)) throw error;
        troubled?.(error);
        for (const source of filters.values()) source.interrupted(error);
        await wait(world, backoffMs(world, ++failures, OUTAGE_DELAYS), signal);
      }
    }
  }

  #resume(live: Live, source: Source): void {
    if (!live.fresh.has(source)) source.resumed();
  }

  /** Until it is time to ask again, or a source has come. */
  async #rest({ signal, nudged }: Live, hasNews: boolean): Promise<void> {
    using joined = new JoinedSignal(signal, nudged);
    await this.#options.pace?.next(hasNews, joined.signal).catch(() => undefined);
    signal.throwIfAborted();
  }
}

interface Answered {
  readonly set: Vim25['UpdateSet'] | undefined;
  readonly isRepeated: boolean;
}

interface Told {
  readonly version: string;
  readonly hasNews: boolean;
  readonly isRepeated: boolean;
}

function newCollector(bound: Bound): Promise<Ref> {
  return bound.call('CreatePropertyCollector', bound.login.content.propertyCollector, {});
}

async function destroy(bound: Bound, collector: Ref): Promise<void> {
  await bound.call('DestroyPropertyCollector', collector, {}, regardless()).catch(() => undefined);
}
