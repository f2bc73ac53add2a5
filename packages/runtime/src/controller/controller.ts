import {
  type BackoffOptions,
  Deadline,
  jittered,
  type Logger,
  messageOf,
  type Timer,
  wait,
} from '@vmwright/core';
import { BackendUnavailableError } from '../availability/availability.ts';
import type { CacheEvent, ObjectCache } from '../cache/cache.ts';
import { versionOf } from '../cache/store.ts';
import { ConflictError, ConnectionError, NotFoundError, UnavailableError } from '../client/errors.ts';
import type { EventRecorder } from '../events/recorder.ts';
import { apiVersionOf, type Kind, resourceOf } from '../kind/kind.ts';
import { type KubeObject, keyOf } from '../kind/object.ts';
import type {
  ControllerMetrics,
  ErrorCause,
  QueueMetrics,
  ReconcileResult,
} from '../metrics/runtime-metrics.ts';
import { type AddOptions, type Item, LOW, NORMAL, WorkQueue } from '../queue/work-queue.ts';
import type { Permission } from '../rbac/permission.ts';
import type { ReconcileContext, WorkContext } from './context.ts';
import { hasFinalizer, setFinalizer } from './finalizer.ts';
import type { Predicate } from './predicates.ts';
import { type Result, TerminalError } from './result.ts';
import { retryAfterOf } from './retry-after.ts';
import { setStatus } from './set-status.ts';
import type { Source, Watch } from './sources.ts';
import { declareCaches, type WorkEnvironment, workContext } from './work.ts';

export type Reconcile<T extends KubeObject> = (object: T, context: ReconcileContext<T>) => Promise<Result>;

export interface ControllerOptions<T extends KubeObject> {
  /** In logs and metrics. @default the kind's name in small letters */
  readonly name?: string;
  /** The kind whose objects it brings to their wanted state. */
  readonly for: Kind<T>;
  /** Which changes of these objects count. @default all */
  readonly predicate?: Predicate<T>;
  /** Kinds of objects that these objects own (as controller): a change of one wakes its owner. */
  readonly owns?: readonly Kind[];
  /** Other objects whose changes wake objects of ours; made by `watch(…)`. */
  readonly watches?: readonly Watch[];
  /** Kinds whose caches `reconcile` and `finalize` read, without being woken by their changes. */
  readonly reads?: readonly Kind[];
  /** Events from outside the cluster. */
  readonly sources?: readonly Source[];
  /** How many objects at a time. @default 1 */
  readonly concurrency?: number;
  /** After which a reconcile's signal aborts. @default 0: never */
  readonly timeoutMs?: number;
  /** Each object is looked at again after about so long, even if nothing happened; 0 for never. @default 36_000_000, ten hours */
  readonly resyncMs?: number;
  readonly backoff?: Partial<BackoffOptions>;
  /** Called for each object, until it succeeds; never twice at a time for the same one. */
  readonly reconcile: Reconcile<T>;
  /**
   * For objects that stand for something outside. The name is put on an object before its first reconcile, and taken off
   * when `finalize` has succeeded on an object that is being deleted; only then does the object go.
   */
  readonly finalizer?: { readonly name: string; readonly finalize: Reconcile<T> };
  /** Also reconciles objects that are being deleted; for a controller without a finalizer of its own. @default false */
  readonly reconcilesDeleting?: boolean;
  /** What `reconcile` and `finalize` do to objects beyond the above, for the role that is generated (`rbacOf`). */
  readonly permissions?: readonly Permission[];
}

/** What a controller takes from the program it is part of. */
export interface ControllerEnvironment extends WorkEnvironment {
  readonly events: Pick<EventRecorder, 'record'>;
  readonly observer?: ControllerObserver;
}

/** Told of what happens, for metrics. */
interface ControllerObserver extends ControllerMetrics {
  readonly queue: QueueMetrics;
}

/** From which on failed attempts in a row are worth a warning. */
const MANY_CONFLICTS = 6;

/** How a reconcile ended. */
interface Outcome {
  readonly result: ReconcileResult;
  readonly cause?: ErrorCause;
}

/** A reconcile under way. */
interface Run {
  /** Versions that it has written itself (`resource@version`), with nobody else's change behind them. */
  readonly ownWrites: string[];
  /** Changes of which its key was told meanwhile. */
  readonly pendingEvents: { readonly change: string; readonly priority: number }[];
  /** Made when first asked for: most reconciles have nothing to say. */
  readonly log: () => Logger;
}

/**
 * Brings the objects of a kind to their wanted state, one `reconcile` after another.
 *
 * Flow: a change in a cache → its key in the queue → `reconcile(object)` with the newest object known → success, or the
 * same again after a back-off.
 *
 * Guarantees: an object is reconciled after every change of it that counts, at the latest when reconciles before it have
 * ended; one object is never reconciled twice at a time; a failing object delays no other; what `reconcile` throws is
 * caught and told with the object's name. Where replicas divide the objects, those of others are left alone: what
 * happens to them meanwhile is in the cache, and they are looked at when they become ours.
 */
export class Controller<T extends KubeObject> {
  readonly name: string;
  readonly queue: WorkQueue;
  readonly #options: ControllerOptions<T>;
  readonly #environment: ControllerEnvironment;
  readonly #cache: ObjectCache<T>;
  readonly #declared: ReadonlySet<string>;
  readonly #log: Logger;
  readonly #runs = new Map<string, Run>();
  /**
   * Objects of which there may be a newer version than the one that we know: a write was refused for it, or has had no
   * answer. That a later reconcile succeeds on the old one proves nothing, so their next change counts, whatever it is.
   */
  readonly #possiblyStale = new Set<string>();
  constructor(options: ControllerOptions<T>, environment: ControllerEnvironment) {
    const { world, caches, log, observer, share } = environment;
    const { concurrency = 1 } = options;
    if (!Number.isInteger(concurrency) || concurrency < 1)
      throw new RangeError(
        `the concurrency of a controller must be a whole number from 1 on, not ${concurrency}`,
      );
    this.name = options.name ?? options.for.kind.toLowerCase();
    this.#options = options;
    this.#environment = environment;
    this.#log = log.child({ controller: this.name });
    this.queue = new WorkQueue({
      clock: world,
      ...(options.backoff && { backoff: options.backoff }),
      ...(observer && { observer: observer.queue }),
    });
    void this.queue.close(); // until it runs: who does not lead would collect the key of each object there ever was
    observer?.queue.read(this.queue);
    observer?.maxConcurrent(options.concurrency ?? 1);
    const { owns = [], watches = [], reads = [] } = options;
    this.#declared = declareCaches(caches, [options.for, ...owns, ...watches.map(({ kind }) => kind), ...reads]);
    this.#cache = caches.get(options.for);
    this.#cache.subscribe((event) => {
      // What another leader has done last, and we had not seen when we began, counts whatever it is.
      const isLate = event.version < (environment.sinceVersion?.() ?? 0);
      if (this.#possiblyStale.delete(event.key) || isLate || this.#matchesPredicate(event))
        this.#enqueueEvent(event.key, options.for, event);
    });
    for (const owned of owns) {
      caches.get(owned).subscribe((event) => {
        for (const key of this.#ownersOf(event)) this.#enqueueEvent(key, owned, event);
      });
    }
    for (const watched of watches) {
      watched.subscribe(caches, (key, event) => this.#enqueueEvent(key, watched.kind, event));
    }
    share?.onGained((isGained) => {
      for (const key of this.#cache.keys()) if (isGained(key)) this.#add(key, { priority: LOW });
    });
  }

  /** Works until the signal aborts and what was under way has ended. */
  async run(signal: AbortSignal): Promise<void> {
    const { sources = [], concurrency = 1 } = this.#options;
    // On a replica that becomes the leader again: what happened meanwhile is in the cache.
    this.queue.open();
    for (const key of this.#cache.keys()) this.#add(key, { priority: LOW });
    const feeding = sources.map((source) => this.#runSource(source, signal));
    const resync = this.#resync();
    const closing = new Promise<void>((resolve) => {
      const close = () => void this.queue.close().then(resolve);
      if (signal.aborted) close();
      else signal.addEventListener('abort', close, { once: true });
    });
    await Promise.all([
      closing,
      ...feeding,
      ...Array.from({ length: concurrency }, () => this.#runWorker(signal)),
    ]);
    resync.cancel();
  }

  /** A source that fails is started again: without it objects would not be looked at until the next resync. */
  async #runSource(source: Source, signal: AbortSignal): Promise<void> {
    const { world } = this.#environment;
    for (let delay = 1_000; !signal.aborted; delay = Math.min(delay * 2, 60_000)) {
      try {
        return await source((key) => this.#add(key), signal);
      } catch (error) {
        if (signal.aborted) return;
        this.#log.error({ error: messageOf(error) }, 'an event source has failed; it is started again');
        await wait(world, jittered(world, delay), signal).catch(() => undefined);
      }
    }
  }

  /** Every key comes in here: those of others do not. */
  #add(key: string, options?: AddOptions): void {
    if (this.#owns(key)) this.queue.add(key, options);
  }

  #owns(key: string): boolean {
    return this.#environment.share?.owns(key) ?? true;
  }

  /** A predicate that throws is a bug, and must not cost the object its reconcile. */
  #matchesPredicate(event: CacheEvent<T>): boolean {
    try {
      return this.#options.predicate?.(event) ?? true;
    } catch (error) {
      this.#log.error({ object: event.key, error: messageOf(error) }, 'the predicate has a bug');
      return true;
    }
  }

  #enqueueEvent(key: string, kind: Kind, { type, version, initial }: CacheEvent<KubeObject>): void {
    const priority = initial ? LOW : NORMAL;
    const run = this.#runs.get(key);
    // The watch may tell of a write before its answer has come, so whose change it is shows only at the end.
    if (run === undefined) this.#add(key, { priority });
    // A deletion is told with the last version there was, which may well be one that we have written.
    else
      run.pendingEvents.push({
        change: `${type === 'removed' ? 'removed ' : ''}${resourceOf(kind)}@${version}`,
        priority,
      });
  }

  *#ownersOf(event: CacheEvent<KubeObject>): Generator<string, void, undefined> {
    const { metadata } = event.object;
    const { for: kind } = this.#options;
    const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
    if (owner?.kind !== kind.kind || groupOf(owner.apiVersion) !== groupOf(apiVersionOf(kind))) return;
    const namespace = kind.scope === 'Namespaced' ? metadata.namespace : undefined;
    yield keyOf({ namespace, name: owner.name });
  }

  /** At a moment of each program's own, so that replicas and kinds do not all come at once. */
  #resync(): Timer {
    const { world } = this.#environment;
    const { resyncMs = 36_000_000 } = this.#options;
    let timer: Timer | undefined;
    const again = () => {
      if (resyncMs <= 0) return;
      timer = world.after(jittered(world, resyncMs, 0.1), () => {
        for (const key of this.#cache.keys()) this.#add(key, { priority: LOW });
        again();
      });
    };
    again();
    return { cancel: () => timer?.cancel() };
  }

  async #runWorker(signal: AbortSignal): Promise<void> {
    for (;;) {
      const item = this.queue.tryTake() ?? (await this.queue.take());
      if (item === undefined) return;
      const { share } = this.#environment;
      const work = share?.begin(item.key);
      if (share !== undefined && work === undefined) {
        // It has become another's while it waited.
        this.queue.forget(item.key);
        this.queue.done(item.key);
        continue;
      }
      await this.#process(item, work?.signal ?? signal);
      work?.end();
    }
  }

  async #process(item: Item, signal: AbortSignal): Promise<void> {
    const { world, observer } = this.#environment;
    const { key, priority } = item;
    const started = world.monotonic();
    observer?.started();
    const { timeoutMs = 0 } = this.#options;
    const deadline = timeoutMs > 0 ? new Deadline(world, timeoutMs, signal) : undefined;
    let log: Logger | undefined;
    const run: Run = {
      ownWrites: [],
      pendingEvents: [],
      log: () => (log ??= this.#log.child({ object: key, reconcileId: world.uuid() })),
    };
    this.#runs.set(key, run);
    let outcome: Outcome;
    try {
      outcome = this.#onSuccess(key, await this.#reconcile(key, run, deadline?.signal ?? signal));
    } catch (error) {
      outcome = this.#onError(item, error, deadline?.passed ?? false, signal, run.log());
      if (signal.aborted || mayBeStale(error)) this.#possiblyStale.add(key);
      const atLeastMs = retryAfterOf(error);
      if (outcome.cause !== 'terminal' && this.#owns(key)) this.queue.retry(key, { priority, atLeastMs });
    }
    deadline?.end();
    this.#runs.delete(key);
    for (const { change, priority: told } of run.pendingEvents)
      if (!run.ownWrites.includes(change)) this.#add(key, { priority: told });
    this.queue.done(key);
    observer?.finished(outcome.result, world.monotonic() - started, outcome.cause);
  }

  #onSuccess(key: string, result: Result): Outcome {
    this.queue.forget(key);
    if (result === undefined) return { result: 'success' };
    this.#add(key, { afterMs: result.requeueAfterMs });
    return { result: 'requeue_after' };
  }

  #onError({ key }: Item, error: unknown, tooLong: boolean, signal: AbortSignal, log: Logger): Outcome {
    const fields = { error: messageOf(error) };
    if (error instanceof TerminalError) {
      this.queue.forget(key);
      log.error(fields, 'reconcile failed for good; the object rests until it changes');
      return { result: 'error', cause: 'terminal' };
    }
    if (!this.#owns(key)) {
      this.queue.forget(key);
      log.debug(fields, 'reconcile was given up: the object goes to another replica');
      return { result: 'requeue' };
    }
    if (error instanceof ConflictError) {
      // Now and then is how it works; again and again, two of us want different things.
      const failures = this.queue.failures(key) + 1;
      if (failures < MANY_CONFLICTS) log.debug(fields, 'the object has changed meanwhile; it comes again');
      else log.warn({ ...fields, failures }, 'the object changes under each attempt; it comes again');
      return { result: 'requeue' };
    }
    if (signal.aborted && !tooLong) {
      log.debug(fields, 'given up: this replica stops, or another is to have the object');
      return { result: 'requeue' };
    }
    const retry = { ...fields, failures: this.queue.failures(key) + 1 };
    if (tooLong) {
      log.error(retry, 'reconcile took too long');
      return { result: 'error', cause: 'timeout' };
    }
    if (error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError) {
      log.error({ ...retry, stack: error.stack }, 'reconcile has a bug');
      return { result: 'error', cause: 'panic' };
    }
    // Every object that needs the backend fails in the same way: `Availability` logs the outage once.
    if (error instanceof BackendUnavailableError)
      log.debug({ ...retry, backend: error.backend }, 'Reconcile failed: backend unavailable');
    else log.error(retry, 'reconcile failed');
    return { result: 'error' };
  }

  async #reconcile(key: string, run: Run, signal: AbortSignal): Promise<Result> {
    const { for: kind, reconcile, finalizer, reconcilesDeleting = false } = this.#options;
    let object = this.#cache.get(key);
    if (object === undefined) return undefined; // gone: nothing is wanted any more
    const context = this.#context(key, run, signal);
    if (finalizer === undefined) {
      const isWanted = object.metadata.deletionTimestamp === undefined;
      return isWanted || reconcilesDeleting ? reconcile(object, context) : undefined;
    }
    if (object.metadata.deletionTimestamp !== undefined) {
      if (!hasFinalizer(object, finalizer.name)) return undefined; // others hold it
      const result = await finalizer.finalize(object, context);
      if (result !== undefined) return result; // not yet
      // It may have changed while we finalized; with the newest known version the removal is not refused for that.
      // The same one, not what was created anew under its name while our watch was behind: that one keeps its finalizer.
      const newest = this.#cache.get(key);
      if (newest !== undefined && newest.metadata.uid === object.metadata.uid) object = newest;
      await setFinalizer(context.client, kind, object, finalizer.name, false).catch((error) => {
        if (!(error instanceof NotFoundError)) throw error; // gone is what was wanted
      });
      return undefined;
    }
    if (!hasFinalizer(object, finalizer.name)) {
      object = await setFinalizer(context.client, kind, object, finalizer.name, true);
    }
    return reconcile(object, context);
  }

  #context(key: string, run: Run, signal: AbortSignal): ReconcileContext<T> {
    const { for: kind } = this.#options;
    const context = workContext(this.#environment, this.#declared, {
      key,
      signal,
      log: run.log,
      onWrite: ({ kind: written, object, conditional }) => {
        if (conditional && object !== undefined) run.ownWrites.push(`${resourceOf(written)}@${versionOf(object)}`);
      },
    });
    const ofReconcile: Omit<ReconcileContext<T>, keyof WorkContext> = {
      key,
      event: (object, happening) => this.#environment.events.record(kind, object, happening, context.client),
      setStatus: (object, status) => setStatus(context.client, kind, object, status),
    };
    return Object.assign(context, ofReconcile);
  }
}

/** Whether there may be a newer version than the one that was known. */
function mayBeStale(error: unknown): boolean {
  return (
    error instanceof ConflictError || error instanceof ConnectionError || error instanceof UnavailableError
  );
}

function groupOf(apiVersion: string): string {
  const cut = apiVersion.indexOf('/');
  return cut === -1 ? '' : apiVersion.slice(0, cut);
}
