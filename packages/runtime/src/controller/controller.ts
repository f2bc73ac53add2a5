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
import type { ObjectCache } from '../cache/cache.ts';
import type { CacheEvent } from '../cache/cache-event.ts';
import { versionOf } from '../cache/store.ts';
import { ConflictError, ConnectionError, NotFoundError, UnavailableError } from '../client/errors.ts';
import type { EventRecorder } from '../events/recorder.ts';
import { apiVersionOf, type Kind, resourceOf } from '../kind/kind.ts';
import { type KubeObject, keyOf, refOf } from '../kind/object.ts';
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

/**
 * Compares an object with its observed state and acts on the difference. Must be idempotent: it is called again after
 * every relevant change, after a failure, and after a restart.
 */
export type Reconcile<T extends KubeObject> = (object: T, context: ReconcileContext<T>) => Promise<Result>;

/** Options of a controller. */
export interface ControllerOptions<T extends KubeObject> {
  /** Name in logs, metrics and events. @default the kind's name in lower case */
  readonly name?: string;
  /** Kind of the objects that the controller reconciles. */
  readonly for: Kind<T>;
  /** Selects the changes of these objects that cause a reconcile. @default all */
  readonly predicate?: Predicate<T>;
  /**
   * Kinds of objects that a reconciled object owns through a controller owner reference. A change of an owned object
   * enqueues its owner.
   */
  readonly owns?: readonly Kind[];
  /** Watches of other kinds, created by `watch(…)`: their changes enqueue objects of this controller. */
  readonly watches?: readonly Watch[];
  /** Kinds that `reconcile` and `finalize` read from the cache. Their changes do not enqueue objects. */
  readonly reads?: readonly Kind[];
  /** Sources of events from outside the cluster. */
  readonly sources?: readonly Source[];
  /** Maximum number of concurrent reconciles. @default 1 */
  readonly concurrency?: number;
  /** Milliseconds after which a reconcile's signal aborts; 0 for never. @default 0 */
  readonly timeoutMs?: number;
  /**
   * Milliseconds, with 10 % jitter, after which every object is reconciled again; 0 for never.
   * @default 36_000_000 (10 h)
   */
  readonly resyncMs?: number;
  /** Back-off between retries of a failing object. */
  readonly backoff?: Partial<BackoffOptions>;
  /** Called for each enqueued object, again after a failure, and never concurrently for the same object. */
  readonly reconcile: Reconcile<T>;
  /**
   * Finalizer for objects that represent resources outside the cluster. The controller adds it before the first
   * reconcile and removes it when `finalize` has succeeded on an object that is being deleted; only then is the object
   * removed.
   */
  readonly finalizer?: { readonly name: string; readonly finalize: Reconcile<T> };
  /** Whether a controller without a finalizer also reconciles objects that are being deleted. @default false */
  readonly reconcilesDeleting?: boolean;
  /** Permissions that `reconcile` and `finalize` need beyond those derived from the other options (see `rbacOf`). */
  readonly permissions?: readonly Permission[];
  /**
   * Called at the start of each run of the controller (with leader election: of each leadership term), before its
   * sources start and before the first reconcile. Drop in-memory state here: another replica may have led since that
   * state was gathered.
   */
  readonly onStartedLeading?: () => void;
}

/** Dependencies of a controller; the manager provides them. */
export interface ControllerEnvironment extends WorkEnvironment {
  readonly events: Pick<EventRecorder, 'record'>;
  readonly observer?: ControllerObserver;
}

/** Receives the metrics of a controller. */
interface ControllerObserver extends ControllerMetrics {
  readonly queue: QueueMetrics;
}

/** Number of consecutive failures at which a conflict is logged as a warning instead of at debug level. */
const MANY_CONFLICTS = 6;

/** Result of a reconcile, for metrics. */
interface Outcome {
  readonly result: ReconcileResult;
  readonly cause?: ErrorCause;
}

/** A reconcile in progress. */
interface Run {
  /** Versions that conditional writes of the reconcile created (see `Write.conditional`), as `resource@version`. */
  readonly ownWrites: string[];
  /** Events of the reconciled key that arrived during the reconcile. */
  readonly pendingEvents: { readonly change: string; readonly priority: number }[];
  /** Trace id of the reconcile, if the program is traced. */
  traceId: string | undefined;
  /** Creates the logger on first use: most reconciles do not log. */
  readonly log: () => Logger;
}

/**
 * Reconciles the objects of a kind.
 *
 * Flow: a change in a cache enqueues a key; a worker takes the key and calls `reconcile(object)` with the newest known
 * version of the object; a failure is retried after a back-off.
 *
 * Guarantees:
 * - Every change that passes the predicate is followed by a reconcile that sees it.
 * - An object is never reconciled concurrently with itself, and a failing object does not delay others.
 * - An error of `reconcile` is caught and logged with the object's name.
 * - Writes of a reconcile that carry the resource version they replace do not enqueue the reconciled object again.
 * - With sharding, objects of other replicas are skipped; they are enqueued when this replica gains their shard.
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
   * Keys of objects that may have a newer version than the cached one, because a write failed with a conflict or
   * without a response. A later reconcile may succeed on the old version. The predicate might then drop the change that
   * brings the newer version, so it is not applied to the next change of the object.
   */
  readonly #possiblyStale = new Set<string>();

  constructor(options: ControllerOptions<T>, environment: ControllerEnvironment) {
    const { world, caches, log, observer, share } = environment;
    const { concurrency = 1 } = options;
    if (!Number.isInteger(concurrency) || concurrency < 1)
      throw new RangeError(`the concurrency of a controller must be a positive integer, not ${concurrency}`);
    this.name = options.name ?? options.for.kind.toLowerCase();
    this.#options = options;
    this.#environment = environment;
    this.#log = log.child({ controller: this.name });
    this.queue = new WorkQueue({
      clock: world,
      ...(options.backoff && { backoff: options.backoff }),
      ...(observer && { observer: observer.queue }),
    });
    // the queue stays closed until `run`, because the queue of a standby replica would collect the keys of all objects
    void this.queue.close();
    observer?.queue.read(this.queue);
    observer?.maxConcurrent(options.concurrency ?? 1);
    const { owns = [], watches = [], reads = [] } = options;
    const others = new Set([...owns, ...watches.map(({ kind }) => kind), ...reads]);
    this.#declared = declareCaches(caches, [options.for, ...others]);
    this.#cache = caches.get(options.for);
    this.#cache.subscribe((event) => {
      // A change older than this leadership term may be the previous leader's last write, delivered after the term
      // began. Its object is enqueued without the predicate, which might drop the change.
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
    // Installing or removing an optional kind can change the result of every reconcile, even if the kind has no
    // objects.
    for (const kind of others) caches.get(kind).onServedChange(() => this.#addAll());
    share?.onGained((isGained) => {
      for (const key of this.#cache.keys()) if (isGained(key)) this.#add(key, { priority: LOW });
    });
  }

  /**
   * Runs until the signal aborts and the reconciles in progress have ended. Can be called again for the next leadership
   * term.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { sources = [], concurrency = 1, onStartedLeading } = this.#options;
    onStartedLeading?.();
    // The queue was closed while another replica led, so every cached object is enqueued.
    this.queue.open();
    this.#addAll();
    const running = sources.map((source) => this.#runSource(source, signal));
    const resync = this.#resync();
    const closing = new Promise<void>((resolve) => {
      const close = () => void this.queue.close().then(resolve);
      if (signal.aborted) close();
      else signal.addEventListener('abort', close, { once: true });
    });
    await Promise.all([
      closing,
      ...running,
      ...Array.from({ length: concurrency }, () => this.#runWorker(signal)),
    ]);
    resync.cancel();
  }

  /** Runs a source and restarts it when it fails. Changes that it misses are found only by the next resync. */
  async #runSource(source: Source, signal: AbortSignal): Promise<void> {
    const { world } = this.#environment;
    for (let delay = 1_000; !signal.aborted; delay = Math.min(delay * 2, 60_000)) {
      try {
        return await source((key) => this.#add(key), signal);
      } catch (error) {
        if (signal.aborted) return;
        this.#log.error({ error: messageOf(error) }, 'Event source failed, restarting');
        await wait(world, jittered(world, delay), signal).catch(() => undefined);
      }
    }
  }

  /** Enqueues keys that this replica owns; drops the rest. */
  #add(key: string, options?: AddOptions): void {
    if (this.#owns(key)) this.queue.add(key, options);
  }

  #addAll(): void {
    for (const key of this.#cache.keys()) this.#add(key, { priority: LOW });
  }

  #owns(key: string): boolean {
    return this.#environment.share?.owns(key) ?? true;
  }

  /** Whether the predicate matches. One that throws counts as a match, so that a bug in it suppresses no reconcile. */
  #matchesPredicate(event: CacheEvent<T>): boolean {
    try {
      return this.#options.predicate?.(event) ?? true;
    } catch (error) {
      this.#log.error({ object: event.key, error: messageOf(error) }, 'Predicate failed, reconciling anyway');
      return true;
    }
  }

  #enqueueEvent(key: string, kind: Kind, { type, version, initial }: CacheEvent<KubeObject>): void {
    const priority = initial ? LOW : NORMAL;
    const run = this.#runs.get(key);
    if (run === undefined) this.#add(key, { priority });
    else {
      // During a reconcile, events are kept, and are compared with the writes of the reconcile afterwards, because the
      // watch event of a write may arrive before the response. A deletion event carries the last version of the object,
      // which may come from one of these writes. The prefix `removed` distinguishes the deletion from the event
      // of that write.
      run.pendingEvents.push({
        change: `${type === 'removed' ? 'removed ' : ''}${resourceOf(kind)}@${version}`,
        priority,
      });
    }
  }

  *#ownersOf(event: CacheEvent<KubeObject>): Generator<string, void, undefined> {
    const { metadata } = event.object;
    const { for: kind } = this.#options;
    const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
    if (owner?.kind !== kind.kind || groupOf(owner.apiVersion) !== groupOf(apiVersionOf(kind))) return;
    const namespace = kind.scope === 'Namespaced' ? metadata.namespace : undefined;
    yield keyOf({ namespace, name: owner.name });
  }

  /** Enqueues every object periodically, with jitter so that the resyncs of replicas and kinds do not coincide. */
  #resync(): Timer {
    const { world } = this.#environment;
    const { resyncMs = 36_000_000 } = this.#options;
    let timer: Timer | undefined;
    const schedule = () => {
      if (resyncMs <= 0) return;
      timer = world.after(jittered(world, resyncMs, 0.1), () => {
        this.#addAll();
        schedule();
      });
    };
    schedule();
    return { cancel: () => timer?.cancel() };
  }

  async #runWorker(signal: AbortSignal): Promise<void> {
    for (;;) {
      const item = this.queue.tryTake() ?? (await this.queue.take());
      if (item === undefined) return;
      const { share } = this.#environment;
      const work = share?.begin(item.key);
      if (share !== undefined && work === undefined) {
        // The shard moved to another replica while the key was queued: drop the key.
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
      traceId: undefined,
      log: () => (log ??= this.#log.child({ object: key, reconcileId: world.uuid(), traceId: run.traceId })),
    };
    this.#runs.set(key, run);
    let outcome: Outcome;
    try {
      outcome = this.#onSuccess(key, await this.#traced(key, run, deadline?.signal ?? signal));
    } catch (error) {
      outcome = this.#onError(item, error, deadline?.passed ?? false, signal, run.log());
      if (signal.aborted || mayBeStale(error)) this.#possiblyStale.add(key);
      const atLeastMs = retryAfterOf(error);
      if (outcome.cause !== 'terminal' && this.#owns(key)) this.queue.retry(key, { priority, atLeastMs });
    }
    deadline?.end();
    this.#runs.delete(key);
    for (const pending of run.pendingEvents)
      if (!run.ownWrites.includes(pending.change)) this.#add(key, { priority: pending.priority });
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
      log.error(fields, 'Reconcile failed, not retried until the object changes');
      return { result: 'error', cause: 'terminal' };
    }
    if (!this.#owns(key)) {
      this.queue.forget(key);
      log.debug(fields, 'Reconcile aborted: the object moves to another replica');
      return { result: 'requeue' };
    }
    if (error instanceof ConflictError) {
      // Single conflicts are normal; many in a row mean that another writer fights over the object.
      const failures = this.queue.failures(key) + 1;
      if (failures < MANY_CONFLICTS) log.debug(fields, 'Object changed during reconcile, retrying');
      else
        log.warn(
          { ...fields, failures },
          'Object changed during reconcile after repeated failures, retrying',
        );
      return { result: 'requeue' };
    }
    if (signal.aborted && !tooLong) {
      log.debug(
        fields,
        'Reconcile aborted: this replica is stopping, has lost leadership, or is handing over the object',
      );
      return { result: 'requeue' };
    }
    const retry = { ...fields, failures: this.queue.failures(key) + 1 };
    if (tooLong) {
      log.error(retry, 'Reconcile timed out');
      return { result: 'error', cause: 'timeout' };
    }
    if (error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError) {
      log.error({ ...retry, stack: error.stack }, 'Reconcile failed with a programming error');
      return { result: 'error', cause: 'panic' };
    }
    // All objects of the backend fail in the same way. `Availability` logs the outage once, so the error of each object
    // is logged only at debug level.
    if (error instanceof BackendUnavailableError)
      log.debug({ ...retry, backend: error.backend }, 'Reconcile failed: backend unavailable');
    else log.error(retry, 'Reconcile failed');
    return { result: 'error' };
  }

  /** Reconciles an object in a span, if the program is traced. */
  #traced(key: string, run: Run, signal: AbortSignal): Promise<Result> {
    const { tracer } = this.#environment;
    if (tracer === undefined) return this.#reconcile(key, run, signal);
    const { uid = '', generation = 0 } = this.#cache.get(key)?.metadata ?? {};
    const { namespace = '', name } = refOf(key);
    const attributes = {
      'k8s.resource': resourceOf(this.#options.for),
      'k8s.namespace.name': namespace,
      'k8s.object.name': name,
      'k8s.object.uid': uid,
      'k8s.object.generation': generation,
    };
    return tracer.span(`reconcile ${this.name}`, attributes, async (span) => {
      run.traceId = span.traceId;
      const result = await this.#reconcile(key, run, signal);
      if (result !== undefined) span.set({ 'reconcile.requeue_after_ms': result.requeueAfterMs });
      return result;
    });
  }

  async #reconcile(key: string, run: Run, signal: AbortSignal): Promise<Result> {
    const { for: kind, reconcile, finalizer, reconcilesDeleting = false } = this.#options;
    let object = this.#cache.get(key);
    if (object === undefined) return undefined; // the object was deleted
    const context = this.#context(key, run, signal);
    if (finalizer === undefined) {
      const isWanted = object.metadata.deletionTimestamp === undefined;
      return isWanted || reconcilesDeleting ? reconcile(object, context) : undefined;
    }
    if (object.metadata.deletionTimestamp !== undefined) {
      if (!hasFinalizer(object, finalizer.name)) return undefined; // only finalizers of other controllers remain
      const result = await finalizer.finalize(object, context);
      if (result !== undefined) return result; // `finalize` asks to be called again
      // The object may have changed during `finalize`. The removal starts from the newest known version, to avoid a
      // conflict. An object that was created again under the same name keeps its finalizer.
      const newest = this.#cache.get(key);
      if (newest !== undefined && newest.metadata.uid === object.metadata.uid) object = newest;
      await setFinalizer(context.client, kind, object, finalizer.name, false).catch((error) => {
        if (!(error instanceof NotFoundError)) throw error; // NotFound is ignored: the object is already gone
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
        if (conditional && object !== undefined)
          run.ownWrites.push(`${resourceOf(written)}@${versionOf(object)}`);
      },
    });
    const ofReconcile: Omit<ReconcileContext<T>, keyof WorkContext> = {
      key,
      event: (object, input) => this.#environment.events.record(kind, object, input, context.client),
      setStatus: (object, status) => setStatus(context.client, kind, object, status),
    };
    return Object.assign(context, ofReconcile);
  }
}

/** Whether the object may have a newer version than the cached one after this error. */
function mayBeStale(error: unknown): boolean {
  return (
    error instanceof ConflictError || error instanceof ConnectionError || error instanceof UnavailableError
  );
}

function groupOf(apiVersion: string): string {
  const cut = apiVersion.indexOf('/');
  return cut === -1 ? '' : apiVersion.slice(0, cut);
}
