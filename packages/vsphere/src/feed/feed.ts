import { type Bound, type Calls, regardless } from '../calls/calls.ts';
import { StoppedError, VsphereError } from '../errors.ts';
import { FaultError } from '../faults.ts';
import type { Ref } from '../properties/properties.ts';
import { backoff, wait } from '../time.ts';
import type { Vim25 } from '../vim25/vim25.generated.ts';
import type { VsphereWorld } from '../world.ts';
import type { Pace } from './pace.ts';
import type { Source } from './source.ts';

const DELAYS = { firstMs: 200, longestMs: 30_000 };
/** How much later than agreed an answer may come before the connection is taken for dead. */
const GRACE_MS = 20_000;
/** After which a source that vCenter has refused is tried again. */
const REFUSED_MS = 60_000;

export interface FeedOptions {
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
 * Flow: it begins with the first source. A call whose answer was lost is repeated with the version that is in hand, and
 * brings what was missed. When the session has ended, or vCenter knows nothing of the collector any more, all is made
 * anew, and everything told from the start. A source that vCenter refuses is tried again now and then, past the others.
 *
 * Guarantees: `settled` comes after a complete telling, never after a part of one; between it and `interrupted`
 * everything is told in order.
 */
export class Feed implements AsyncDisposable {
  readonly #options: FeedOptions;
  readonly #sources = new Set<Source>();
  readonly #stopped = new AbortController();
  #anew = new AbortController();
  #running: Promise<void> | undefined;
  /** Whose filters the collector has. */
  #told: readonly Source[] = [];

  constructor(options: FeedOptions, sources: readonly Source[] = []) {
    this.#options = options;
    for (const source of sources) this.#sources.add(source);
  }

  /** With those that are there it begins again: vCenter tells a filter that is added later nothing until a change. */
  add(source: Source): void {
    this.#stopped.signal.throwIfAborted();
    this.#sources.add(source);
    if (this.#running === undefined) this.start();
    else this.restart();
  }

  remove(source: Source): void {
    if (this.#sources.delete(source)) this.restart();
  }

  /** All is made anew, and told from the start. */
  restart(): void {
    this.#anew.abort(new Anew());
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
      this.#anew = new AbortController();
      const signal = AbortSignal.any([this.#stopped.signal, this.#anew.signal]);
      const wasTold = () => {
        failures = 0;
      };
      try {
        await this.#follow(signal, wasTold);
      } catch (error) {
        this.#interrupt(error);
        if (this.#stopped.signal.aborted) return;
        if (error instanceof Anew) continue;
        this.#options.troubled?.(error);
        await wait(world, backoff(world, failures++, DELAYS), signal).catch(() => undefined);
      }
    }
  }

  async #follow(signal: AbortSignal, wasTold: () => void): Promise<never> {
    const bound = await this.#options.calls.bind(signal);
    const collector = await newCollector(bound);
    const over = new AbortController();
    let retrying: Promise<void> | undefined;
    try {
      this.#told = [...this.#sources];
      const filters = await this.#openFilters(bound, collector, this.#told);
      const told = new Set(filters.values());
      const refused = this.#told.filter((source) => !told.has(source));
      this.#told = [...told];
      if (refused.length > 0) retrying = this.#retry(refused, AbortSignal.any([signal, over.signal]));
      let version = '';
      for (let isSettled = false; ; ) {
        // The first answers come at once, also when there is nothing to tell.
        const set = await this.#next(bound, collector, version, isSettled, signal);
        for (const { filter, objectSet } of set?.filterSet ?? [])
          filters.get(filter.value)?.apply(objectSet ?? []);
        version = set?.version ?? version;
        if (set?.truncated) continue;
        if (isSettled)
          wasTold(); // not by the first: who fails at the second each time would list everything all the time
        else {
          isSettled = true;
          for (const source of filters.values()) source.settled();
        }
        await this.#options.pace?.next(set !== undefined, signal);
      }
    } catch (error) {
      over.abort();
      await retrying; // or it might replace what the next try has opened
      // Where it is not the session that has ended, it would be kept, and told of everything, for as long as that lasts.
      const isKept = !(error instanceof FaultError && error.code === 'NOT_AUTHENTICATED');
      const gone = isKept ? destroy(bound, collector) : undefined;
      if (signal.aborted) await gone; // else nobody waits for a vCenter that may not answer
      throw error;
    }
  }

  /** Until one of them is not refused any more: then all begins anew. The others are told everything meanwhile. */
  async #retry(refused: readonly Source[], signal: AbortSignal): Promise<void> {
    const { world, calls } = this.#options;
    while (!signal.aborted)
      try {
        await wait(world, REFUSED_MS, signal);
        const bound = await calls.bind(signal);
        const collector = await newCollector(bound);
        const filters = await this.#openFilters(bound, collector, refused).finally(() =>
          destroy(bound, collector),
        );
        if (filters.size > 0) this.restart();
      } catch {
        // It was asked to end; or vCenter does not answer, which who waits for changes tells of.
      }
  }

  async #openFilters(bound: Bound, collector: Ref, sources: readonly Source[]): Promise<Map<string, Source>> {
    const filters = new Map<string, Source>();
    for (const source of sources) {
      try {
        const spec = await source.open(bound);
        // Whole properties, not what changed in them.
        const filter = await bound.call('CreateFilter', collector, { spec, partialUpdates: false });
        filters.set(filter.value, source);
      } catch (error) {
        // What may not be looked at keeps nobody from looking at the rest, if there is one.
        const isItsOwn = error instanceof FaultError && error.code !== 'NOT_AUTHENTICATED';
        if (!isItsOwn || this.#sources.size === 1) throw error;
        source.interrupted(error);
        this.#options.troubled?.(error);
      }
    }
    return filters;
  }

  /** The next answer, asked for again with the same version until it comes. */
  async #next(
    bound: Bound,
    collector: Ref,
    version: string,
    isSettled: boolean,
    signal: AbortSignal,
  ): Promise<Vim25['UpdateSet'] | undefined> {
    const { world, maxWaitSeconds = 60, pageSize, troubled } = this.#options;
    const seconds = isSettled ? maxWaitSeconds : 0;
    const options = {
      maxWaitSeconds: seconds,
      ...(pageSize !== undefined && { maxObjectUpdates: pageSize }),
    };
    const limits = { signal, lasting: true, timeoutMs: seconds * 1_000 + GRACE_MS };
    for (let failures = 0; ; failures++) {
      try {
        const set = await bound.call('WaitForUpdatesEx', collector, { version, options }, limits);
        if (failures > 0) for (const source of this.#told) source.resumed();
        return set;
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof FaultError || !(error instanceof VsphereError && error.retryable)) throw error;
        troubled?.(error);
        for (const source of this.#told) source.interrupted(error);
        await wait(world, backoff(world, failures, DELAYS), signal);
      }
    }
  }

  #interrupt(error: unknown): void {
    for (const source of this.#told) source.interrupted(error);
    this.#told = [];
  }
}

function newCollector(bound: Bound): Promise<Ref> {
  return bound.call('CreatePropertyCollector', bound.login.content.propertyCollector, {});
}

async function destroy(bound: Bound, collector: Ref): Promise<void> {
  await bound.call('DestroyPropertyCollector', collector, {}, regardless()).catch(() => undefined);
}

/** The sources have changed. */
class Anew extends Error {}
