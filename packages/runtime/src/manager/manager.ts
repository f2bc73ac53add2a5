import { hostname } from 'node:os';
import { Fence, jsonLogger, type Logger, messageOf, Registry, wait } from '@vmwright/core';
import { Caches } from '../cache/caches.ts';
import { Client } from '../client/client.ts';
import { ignoreNotFound } from '../client/ignore.ts';
import type { RequestObserver } from '../client/requests.ts';
import { tracedRequests } from '../client/traced-requests.ts';
import { Controller, type ControllerOptions } from '../controller/controller.ts';
import type { WorkEnvironment } from '../controller/work.ts';
import { DebugEndpoints } from '../debug/endpoints.ts';
import { LeaderElection, type OnLeading } from '../election/leader-election.ts';
import { EventRecorder } from '../events/recorder.ts';
import { Namespace } from '../kind/builtin/namespace.ts';
import type { DeclaredKind, NamedVersion } from '../kind/define.ts';
import { type Kind, resourceOf } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';
import { RuntimeMetrics } from '../metrics/runtime-metrics.ts';
import type { QueuedKey } from '../queue/work-queue.ts';
import { Sharding } from '../sharding/sharding.ts';
import { type AdmissionRules, admission } from '../webhook/admission.ts';
import { type ConversionRules, conversion } from '../webhook/conversion.ts';
import type { Webhook } from '../webhook/endpoints.ts';
import { Webhooks } from '../webhook/webhooks.ts';
import { Job, type JobOptions } from './job.ts';
import type { ManagerElection, ManagerOptions, ManagerSharding } from './options.ts';
import { Runnable, type RunnableOptions } from './runnable.ts';
import { StatusEndpoints } from './status-endpoints.ts';

/** Format that the API server requires of an event's `reportingController`. */
const QUALIFIED_NAME =
  /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\/[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;

/** Maximum number of distinct API-server warnings to log. */
const MAX_WARNINGS = 100;

/** Time to write the remaining events after the last reconcile has ended. */
const FLUSH_EVENTS_MS = 2_000;

/**
 * Runs controllers, jobs, runnables and webhooks that share one client and one set of caches.
 *
 * Start order: status server, webhooks, caches, leader election, controllers. A standby replica also syncs its caches,
 * so that it can take over immediately.
 *
 * Stop order: controllers accept no new work and finish running reconciles, leadership is released, caches stop,
 * webhooks stop, connections close, the status server stops.
 *
 * Guarantees: leadership is never released while a reconcile is running, because the next leader would act at the same
 * time. With sharding, another replica gets a namespace only when no reconcile in that namespace is running.
 */
export class Manager {
  readonly client: Client;
  readonly caches: Caches;
  /** Metrics registry; programs can add their own metrics. */
  readonly registry = new Registry();
  readonly #metrics = new RuntimeMetrics(this.registry);
  readonly #options: ManagerOptions;
  readonly #election: LeaderElection | undefined;
  readonly #sharding: Sharding | undefined;
  readonly #leases: Client;
  readonly #log: Logger;
  readonly #webhooks: Webhooks | undefined;
  readonly #recorders: EventRecorder[] = [];
  readonly #workers = new Map<string, { run(signal: AbortSignal): Promise<void> }>();
  readonly #queues = new Map<string, { readonly keys: readonly QueuedKey[] }>();
  readonly #operations = new Map<string, () => readonly object[]>();
  readonly #endpoints: StatusEndpoints | undefined;
  /** Fence of a manager with neither election nor sharding; open until `run` returns. */
  readonly #soleReplica = new Fence();
  #running = false;

  constructor(options: ManagerOptions) {
    const { world, access, name, namespaces, election, sharding } = options;
    const log = options.log ?? jsonLogger({ clock: world });
    this.#options = options;
    this.#log = log;
    const warned = new Set<string>();
    const observer: RequestObserver = {
      ...tracedRequests(this.#metrics.requests(access.server.origin), options.tracer),
      warned: (text) => {
        if (warned.has(text) || warned.size >= MAX_WARNINGS) return;
        warned.add(text);
        log.warn({ warning: text }, 'API server warning (logged once)');
      },
    };
    this.client = new Client({ world, access, fieldManager: name, userAgent: name, observer });
    this.caches = new Caches({
      world,
      client: this.client,
      namespaces,
      namespaceExists: async (namespace) =>
        (await ignoreNotFound(this.client.get(Namespace, { name: namespace }))) !== undefined,
      onError: (kind, error) =>
        log.warn({ kind: resourceOf(kind), error: messageOf(error) }, 'Watch failed, retrying'),
      onListable: (kind, namespace, listable, error) => {
        const fields = { kind: resourceOf(kind), namespace };
        if (listable) log.info(fields, 'Namespace can be listed again');
        else
          log.warn(
            { ...fields, error: messageOf(error) },
            'Namespace cannot be listed or watched, continuing without it and retrying (logged once)',
          );
      },
      onServed: (kind, isServed) => {
        const fields = { kind: resourceOf(kind) };
        if (isServed) log.info(fields, 'Optional kind was installed');
        else log.info(fields, 'Optional kind is not installed, continuing without it');
      },
    });
    // Leases use separate connections, because a renewal that is queued behind slow writes would be too late.
    this.#leases = new Client({ world, access, fieldManager: name, userAgent: name, observer });
    this.#election = election && this.#createElection(election);
    this.#sharding = sharding && this.#createSharding(sharding);
    const debug = new DebugEndpoints({
      clock: world,
      // While this returns true, heap snapshots are rejected, because they would block the replica until it loses its
      // Lease. Without election and sharding, there is no Lease to lose.
      isLeading: () => this.#election?.isLeading() ?? this.#sharding?.isMember() ?? false,
      queues: () => Object.fromEntries([...this.#queues].map(([queue, { keys }]) => [queue, keys])),
      operations: () => Object.fromEntries([...this.#operations].map(([worker, read]) => [worker, read()])),
    });
    const { client, caches, registry } = this;
    const parts = { world, client, logger: log, metrics: this.#metrics, name, namespace: access.namespace };
    this.#webhooks = options.webhooks && new Webhooks(options.webhooks, parts);
    const webhooks = this.#webhooks;
    this.#endpoints =
      options.status &&
      new StatusEndpoints(options.status, { world, client, log, registry, caches, webhooks, debug });
  }

  /**
   * Adds a controller. Must be called before `run`.
   * @throws if the manager is already running, the name is already in use, or the API server would reject the name as
   *   an event's `reportingController`
   */
  control<T extends KubeObject>(options: ControllerOptions<T>): Controller<T> {
    const name = options.name ?? options.for.kind.toLowerCase();
    this.#assertNew(name);
    const events = this.#recorder(name);
    const observer = { ...this.#metrics.controller(name), queue: this.#metrics.queue(name) };
    const controller = new Controller(options, { ...this.#environment, events, observer });
    this.#workers.set(name, controller);
    this.#queues.set(name, controller.queue);
    return controller;
  }

  /**
   * Makes `/debug/operations` list operations that outlive a reconcile.
   * @param read returns the operations in flight
   */
  showOperations(name: string, read: () => readonly object[]): void {
    this.#operations.set(name, read);
  }

  /** Adds a periodic job, which is not tied to an object. It runs on one replica at a time. Call it before `run`. */
  job(options: JobOptions): void {
    this.#assertNew(options.name);
    const events = this.#recorder(options.name);
    this.#workers.set(options.name, new Job(options, { ...this.#environment, events }));
  }

  /** Adds long-running work. It runs on the leader or, with sharding, on every replica. Must be called before `run`. */
  add(options: RunnableOptions): void {
    this.#assertNew(options.name);
    const events = this.#recorder(options.name);
    this.#workers.set(options.name, new Runnable(options, { ...this.#environment, events }));
  }

  /** Adds an admission webhook that validates or mutates objects of a kind. Call it on all replicas, before `run`. */
  admit<T extends KubeObject>(kind: Kind<T>, rules: AdmissionRules<T>): void {
    this.#addWebhook(admission(kind, rules));
  }

  /** Adds a conversion webhook between the versions of a kind. Must be called on all replicas, before `run`. */
  convert<const V extends readonly NamedVersion[]>(kind: DeclaredKind<V>, rules: ConversionRules<V>): void {
    this.#addWebhook(conversion(kind, rules));
  }

  /**
   * Whether this replica may act at this moment. With election: whether it leads. With sharding: whether it may act on
   * its shards. With neither: whether `run` was called.
   */
  get isActive(): boolean {
    return this.#election?.isLeading() ?? this.#sharding?.isMember() ?? this.#running;
  }

  /** Whether all caches have synced. If several namespaces are watched, those that cannot be listed are skipped. */
  get ready(): boolean {
    return this.caches.unsynced.length === 0;
  }

  /**
   * Runs until the signal aborts and everything has stopped. A replica that loses leadership stands by again. A replica
   * that loses its sharding membership joins again.
   * @throws if a server cannot start, the caches do not sync, a runnable ends early, or a reconcile does not end in
   *   time. The caller must then exit the process
   */
  async run(signal: AbortSignal): Promise<void> {
    this.#running = true;
    const caching = new AbortController();
    // The status server starts first, so that liveness probes succeed while the caches sync.
    await using _ = await this.#endpoints?.serve();
    try {
      // Webhooks must start before any cache: the API server calls the conversion webhook for the initial list.
      await this.#webhooks?.start(signal);
      await using _secure = await this.#endpoints?.serveSecure();
      if (this.#options.election?.observesFirst === true) await this.#election?.observe(signal);
      await this.#sync(caching.signal, signal);
      const act: OnLeading = (acting, leadershipLost) => this.#runWorkers(acting, leadershipLost);
      const never = new AbortController().signal;
      await ((this.#election ?? this.#sharding)?.run(signal, act) ?? act(signal, never));
    } finally {
      this.#soleReplica.close();
      caching.abort();
      await this.caches.ended();
      await this.#webhooks?.close();
      await Promise.all([this.client[Symbol.asyncDispose](), this.#leases[Symbol.asyncDispose]()]);
    }
  }

  get #environment(): WorkEnvironment {
    return {
      world: this.#options.world,
      client: this.client,
      caches: this.caches,
      log: this.#log,
      tracer: this.#options.tracer,
      fence: (key) => this.#election?.fence ?? this.#sharding?.fence(key) ?? this.#soleReplica,
      sinceVersion: () => this.#election?.sinceVersion ?? 0,
      hasFreshCaches: () => this.#election?.wasReleased ?? false,
      share: this.#sharding,
    };
  }

  /** Creates the event recorder of a controller, job or runnable. @throws if the API server would reject the name */
  #recorder(name: string): EventRecorder {
    const controller = `${this.#options.name}/${name}`;
    if (!QUALIFIED_NAME.test(controller))
      throw new Error(
        `${controller} is not a valid reporting controller for events: the manager name may contain lower-case letters, digits, "-" and "."; the controller name may contain letters, digits, "-", "_" and ".", and must have at most 63 characters`,
      );
    const { world, eventGroup } = this.#options;
    const events = new EventRecorder({
      world,
      controller,
      client: this.client,
      group: eventGroup,
      instance: hostname(),
      log: this.#log,
    });
    this.#recorders.push(events);
    return events;
  }

  #assertNew(name: string): void {
    if (this.#running) throw new Error(`cannot add ${name}: the manager is already running`);
    if (this.#workers.has(name))
      throw new Error(`a controller, job or runnable named ${name} already exists; set a different \`name\``);
  }

  #addWebhook(webhook: Webhook): void {
    if (this.#webhooks === undefined)
      throw new Error(`the ${webhook.type} of ${webhook.kind.kind} requires the manager option \`webhooks\``);
    this.#webhooks.add(webhook);
  }

  #createElection({
    name,
    namespace,
    identity,
    observesFirst: _,
    ...times
  }: ManagerElection): LeaderElection {
    const { world, access } = this.#options;
    const metrics = this.#metrics.election(name);
    return new LeaderElection({
      world,
      client: this.#leases,
      lease: { name, namespace: namespace ?? access.namespace },
      identity: identity ?? hostname(),
      ...times,
      observer: {
        leading: (leading) => {
          metrics.leading(leading);
          this.#log.info({ lease: name, leading }, leading ? 'Became leader' : 'Standing by as non-leader');
        },
        failed: (error) =>
          this.#log.warn({ lease: name, error: messageOf(error) }, 'Reading or writing the Lease failed'),
      },
    });
  }

  #createSharding({ name, namespace, identity, ...rest }: ManagerSharding): Sharding {
    const { world, access } = this.#options;
    const metrics = this.#metrics.sharding(name);
    return new Sharding({
      world,
      client: this.#leases,
      name,
      namespace: namespace ?? access.namespace,
      identity: identity ?? hostname(),
      ...rest,
      observer: {
        owns: (owned, shards, members) => {
          metrics.owns(owned, members);
          this.#log.info({ sharding: name, owned, shards, members }, 'Shard ownership changed');
        },
        failed: (error) =>
          this.#log.warn({ sharding: name, error: messageOf(error) }, 'Reading or writing the Leases failed'),
      },
    });
  }

  async #sync(caching: AbortSignal, signal: AbortSignal): Promise<void> {
    const { world, syncTimeoutMs = 120_000 } = this.#options;
    const done = new AbortController();
    const timeout = wait(world, syncTimeoutMs, done.signal).then(
      () => {
        const missing = this.caches.unsynced.join(', ');
        throw new Error(
          `no complete list of ${missing} after ${syncTimeoutMs / 1000} s; see the log for the cause`,
        );
      },
      () => undefined,
    );
    try {
      await Promise.race([this.caches.start(caching), aborted(signal), timeout]);
    } finally {
      done.abort();
    }
  }

  /** Runs all controllers, jobs and runnables until `signal` aborts. @throws if a reconcile does not end in time */
  async #runWorkers(signal: AbortSignal, leadershipLost: AbortSignal): Promise<void> {
    const { world, graceMs = 30_000 } = this.#options;
    const working = Promise.all([
      aborted(signal), // a manager without controllers, for example with only webhooks, also runs until it is stopped
      ...[...this.#workers.values()].map((worker) => worker.run(signal)),
    ]);
    const done = new AbortController();
    const { slackMs = graceMs } = this.#election ?? this.#sharding ?? {};
    const grace = new Promise<void>((resolve, reject) => {
      const startTimer = (ms: number) =>
        wait(world, ms, done.signal).then(
          // A reconcile that has not ended could act at the same time as the next leader. So `run` rejects, and its
          // caller must exit the process.
          () => reject(new Error(`a reconcile has not ended within ${ms / 1000} s of the stop request`)),
          () => resolve(),
        );
      // When leadership is lost, even during a shutdown, the next leader may start `slackMs` later. So reconciles must
      // end within `slackMs`, or within `graceMs` if that is shorter.
      onAbort(leadershipLost, () => void startTimer(Math.min(graceMs, slackMs)));
      onAbort(signal, () => void startTimer(graceMs));
    });
    await Promise.race([working, grace]);
    // Flush events only briefly: the next leader may be waiting for this replica to release leadership.
    const flushed = Promise.all(this.#recorders.map((recorder) => recorder.flush()));
    await Promise.race([flushed, wait(world, FLUSH_EVENTS_MS, done.signal).catch(() => undefined)]);
    done.abort();
  }
}

function onAbort(signal: AbortSignal, callback: () => void): void {
  if (signal.aborted) callback();
  else signal.addEventListener('abort', callback, { once: true });
}

/** Returns a promise that resolves when the signal aborts. */
function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => onAbort(signal, resolve));
}
