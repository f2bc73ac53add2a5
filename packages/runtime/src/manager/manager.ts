import { hostname } from 'node:os';
import {
  Fence,
  jsonLogger,
  type Logger,
  type LogLevel,
  messageOf,
  processMetrics,
  Registry,
  type World,
  wait,
} from '@vmwright/core';
import type { Access } from '../access/access.ts';
import { Caches } from '../cache/caches.ts';
import { Client } from '../client/client.ts';
import type { RequestObserver } from '../client/requests.ts';
import { Controller, type ControllerOptions } from '../controller/controller.ts';
import type { WorkEnvironment } from '../controller/work.ts';
import { LeaderElection, type OnLeading } from '../election/leader-election.ts';
import type { LeaderElectionOptions } from '../election/options.ts';
import { EventRecorder } from '../events/recorder.ts';
import type { DeclaredKind, NamedVersion } from '../kind/define.ts';
import { type Kind, resourceOf } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';
import { RuntimeMetrics } from '../metrics/runtime-metrics.ts';
import { StatusServer } from '../server/server.ts';
import { TokenAccess } from '../server/token-access.ts';
import type { ShardingOptions } from '../sharding/options.ts';
import { Sharding } from '../sharding/sharding.ts';
import { type AdmissionRules, admission } from '../webhook/admission.ts';
import { type ConversionRules, conversion } from '../webhook/conversion.ts';
import type { Webhook } from '../webhook/endpoints.ts';
import { type WebhookOptions, Webhooks } from '../webhook/webhooks.ts';
import { Job, type JobOptions } from './job.ts';

export interface ManagerElection extends Pick<LeaderElectionOptions, 'leaseMs' | 'renewMs' | 'retryMs'> {
  /** Of the Lease; the same for all replicas. */
  readonly name: string;
  /** Of the Lease. @default the one that the access names */
  readonly namespace?: string;
  /** Who this replica is, for people. @default the machine's name */
  readonly identity?: string;
}

export interface ManagerSharding
  extends Pick<ShardingOptions, 'name' | 'leaseMs' | 'renewMs' | 'retryMs' | 'shards'> {
  /** Of the Leases. @default the one that the access names */
  readonly namespace?: string;
  /** Who this replica is, for people. @default the machine's name */
  readonly identity?: string;
}

/** How several replicas get along. Without either, this one acts on everything at once: for a program that runs only once. */
export type Replicas =
  | {
      /** One of them acts, the others stand by. */
      readonly election?: ManagerElection;
      readonly sharding?: never;
    }
  | {
      /**
       * Each acts on its share of the namespaces. Every replica caches and watches everything, so that it takes over
       * warm: more replicas share the work, not the memory nor the watches.
       */
      readonly sharding?: ManagerSharding;
      readonly election?: never;
    };

export type ManagerOptions = CommonOptions & Replicas;

export interface CommonOptions {
  readonly world: World;
  readonly access: Access;
  /** Of the program: its field manager and user agent. */
  readonly name: string;
  /** @default lines of JSON on standard error */
  readonly log?: Logger;
  /**
   * The namespaces it looks at. Of several, one in which some kind cannot be listed (403, say) is left out of all caches
   * until it can be, and holds up none of the others: its objects are not reconciled meanwhile, and what a cache lacks
   * of them is not gone. @default all
   */
  readonly namespaces?: readonly string[];
  /** Serves `/healthz` and `/readyz`, and `/metrics` and `/debug/loglevel` as it says. @default no server */
  readonly status?: StatusOptions;
  /** For `admit` and `convert`: where the API server asks. */
  readonly webhooks?: WebhookOptions;
  /** For the first complete list of every kind. @default 120_000 */
  readonly syncTimeoutMs?: number;
  /** For reconciles under way to end, when the program stops. @default 30_000 */
  readonly graceMs?: number;
}

export interface StatusOptions {
  /** 0 for any that is free. */
  readonly port: number;
  /** On a loopback address `/metrics` and `/debug/loglevel` are open, on others not. @default all addresses of this machine */
  readonly host?: string;
  /** The level that `/debug/loglevel` shows and sets. @default it is not served */
  readonly logLevel?: LogLevel;
  /** Serves `/metrics` without authentication, whatever the address. @default false */
  readonly openMetrics?: boolean;
  /**
   * Serves `/metrics` and `/debug/loglevel` over HTTPS to clients with a Kubernetes token whose user may `get` or `put` the
   * path. Needs `webhooks`, whose certificate it shows, and the permissions of `rbacOf` with `secureStatus`.
   * @default no such server
   */
  readonly secure?: { readonly port: number; readonly host?: string } | undefined;
}

/** As whom the API server lets events be told. */
const QUALIFIED_NAME =
  /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\/[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;

/** Of the API server's that are told. */
const MOST_WARNINGS = 100;

/** For the events of reconciles that have just ended. */
const LAST_EVENTS_MS = 2_000;

/**
 * A program of controllers over one connection and one set of caches.
 *
 * Flow: the status server answers → webhooks answer → caches fill (also on a replica that waits, so that it can take over warm) → election → controllers. On stop:
 * controllers take no new work and end what they have → the lead is given up → caches end → webhooks end → connections close → the server ends.
 * The lead is never given up while a reconcile is under way: its successor would act at the same time. With sharding
 * instead of election, the same holds for each namespace: it goes to another only when no reconcile in it is under way.
 */
export class Manager {
  readonly client: Client;
  readonly caches: Caches;
  /** For metrics of the program's own. */
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
  /** For a program that runs only once: it may act until it has ended. */
  readonly #alone = new Fence();
  #running = false;

  constructor(options: ManagerOptions) {
    const { world, access, name, namespaces, election, sharding } = options;
    const log = options.log ?? jsonLogger({ clock: world });
    this.#options = options;
    this.#log = log;
    const warned = new Set<string>();
    const observer: RequestObserver = {
      ...this.#metrics.requests(access.server.origin),
      warned: (text) => {
        if (warned.has(text) || warned.size >= MOST_WARNINGS) return;
        warned.add(text);
        log.warn({ warning: text }, 'the API server warns; this is told once');
      },
    };
    this.client = new Client({ world, access, fieldManager: name, userAgent: name, observer });
    this.caches = new Caches({
      world,
      client: this.client,
      namespaces,
      onError: (kind, error) =>
        log.warn({ kind: resourceOf(kind), error: messageOf(error) }, 'a watch has failed'),
      onListable: (kind, namespace, is, error) => {
        const where = { kind: resourceOf(kind), namespace };
        if (is) log.info(where, 'the namespace can be listed again');
        else
          log.warn(
            { ...where, error: messageOf(error) },
            'the namespace cannot be listed or watched; the others go on without it, and it is tried again. This is told once',
          );
      },
    });
    // Connections of their own: a renewal that waits behind eight slow writes comes too late.
    this.#leases = new Client({ world, access, fieldManager: name, userAgent: name, observer });
    this.#election = election && this.#elect(election);
    this.#sharding = sharding && this.#divide(sharding);
    const { client } = this;
    const parts = { world, client, logger: log, metrics: this.#metrics, name, namespace: access.namespace };
    this.#webhooks = options.webhooks && new Webhooks(options.webhooks, parts);
    if (options.status?.secure !== undefined && this.#webhooks === undefined)
      throw new Error("`status.secure` needs the manager's option `webhooks`, whose certificate it shows");
  }

  /**
   * Adds a controller; before `run`.
   * @throws when there is one of its name, or its name is none that events can be told under
   */
  control<T extends KubeObject>(options: ControllerOptions<T>): Controller<T> {
    const name = options.name ?? options.for.kind.toLowerCase();
    this.#assertNew(name);
    const events = this.#recorder(name);
    const observer = { ...this.#metrics.controller(name), queue: this.#metrics.queue(name) };
    const controller = new Controller(options, { ...this.#environment, events, observer });
    this.#workers.set(name, controller);
    return controller;
  }

  /** Adds work that belongs to no object and is done again and again, on one replica at a time; before `run`. */
  job(options: JobOptions): void {
    this.#assertNew(options.name);
    const events = this.#recorder(options.name);
    this.#workers.set(options.name, new Job(options, { ...this.#environment, events }));
  }

  /** Has objects of a kind validated or changed before they are stored; before `run`, and on all replicas. */
  admit<T extends KubeObject>(kind: Kind<T>, rules: AdmissionRules<T>): void {
    this.#addWebhook(admission(kind, rules));
  }

  /** Has objects of a kind converted between its versions; before `run`, and on all replicas. */
  convert<const V extends readonly NamedVersion[]>(kind: DeclaredKind<V>, rules: ConversionRules<V>): void {
    this.#addWebhook(conversion(kind, rules));
  }

  /** Whether all caches have had their first complete list, of several namespaces of those that can be listed. */
  get ready(): boolean {
    return this.caches.unsynced.length === 0;
  }

  /**
   * Runs until the signal aborts and everything has ended in order; a replica that loses the lead stands by again, one
   * that loses its share of the namespaces joins again.
   * @throws when caches cannot be filled, or when a reconcile does not end: the process should then exit
   */
  async run(signal: AbortSignal): Promise<void> {
    this.#running = true;
    const caching = new AbortController();
    // First of all: who asks whether it is alive, while caches fill, is to get an answer.
    await using _ = await this.#serve();
    try {
      // Before any cache: the first list of a kind that is converted asks us.
      await this.#webhooks?.start(signal);
      await using _secure = await this.#serveSecurely();
      await this.#sync(caching.signal, signal);
      const act: OnLeading = (acting, lost) => this.#act(acting, lost);
      // A signal of its own: what listens to it goes with it.
      const never = new AbortController().signal;
      await ((this.#election ?? this.#sharding)?.run(signal, act) ?? act(signal, never));
    } finally {
      this.#alone.close();
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
      fence: (key) => this.#election?.fence ?? this.#sharding?.fence(key) ?? this.#alone,
      sinceVersion: () => this.#election?.sinceVersion ?? 0,
      share: this.#sharding,
    };
  }

  /** Records events under the name of a controller or job. @throws when the API server would reject that name */
  #recorder(name: string): EventRecorder {
    const controller = `${this.#options.name}/${name}`;
    if (!QUALIFIED_NAME.test(controller))
      throw new Error(
        `no events can be told as ${controller}: the program's name is of small letters, digits, "-" and "."; the controller's of letters, digits, "-", "_" and ".", at most 63`,
      );
    const { world } = this.#options;
    const events = new EventRecorder({
      ...{ world, controller, client: this.client },
      instance: hostname(),
      log: this.#log,
    });
    this.#recorders.push(events);
    return events;
  }

  #assertNew(name: string): void {
    if (this.#running) throw new Error(`${name} is added while the manager runs; add it before`);
    if (this.#workers.has(name))
      throw new Error(`there are two controllers or jobs called ${name}; give one another \`name\``);
  }

  #addWebhook(webhook: Webhook): void {
    if (this.#webhooks === undefined)
      throw new Error(`the ${webhook.type} of ${webhook.kind.kind} needs the manager's option \`webhooks\``);
    this.#webhooks.add(webhook);
  }

  #elect({ name, namespace, identity, ...times }: ManagerElection): LeaderElection {
    const { world, access } = this.#options;
    const metrics = this.#metrics.election(name);
    return new LeaderElection({
      world,
      client: this.#leases,
      lease: { name, namespace: namespace ?? access.namespace },
      identity: identity ?? hostname(),
      ...times,
      observer: {
        leading: (is) => {
          metrics.leading(is);
          this.#log.info({ lease: name, leading: is }, is ? 'this replica leads' : 'this replica stands by');
        },
        failed: (error) =>
          this.#log.warn({ lease: name, error: messageOf(error) }, 'the lease could not be read or written'),
      },
    });
  }

  #divide({ name, namespace, identity, ...rest }: ManagerSharding): Sharding {
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
          this.#log.info({ sharding: name, owned, shards, members }, 'this replica has its share');
        },
        failed: (error) =>
          this.#log.warn(
            { sharding: name, error: messageOf(error) },
            'the leases could not be read or written',
          ),
      },
    });
  }

  async #serve(): Promise<AsyncDisposable | undefined> {
    if (this.#options.status === undefined) return undefined;
    const { world } = this.#options;
    const { secure: _, ...status } = this.#options.status;
    processMetrics(this.registry, { clock: world });
    const server = await StatusServer.start({
      clock: world,
      logger: this.#log,
      metrics: this.registry,
      ...status,
    });
    this.#log.info({ port: server.port }, 'serving metrics, health and readiness');
    server.ready.add('caches', () => {
      if (!this.ready) throw new Error(`no complete list yet of ${this.caches.unsynced.join(', ')}`);
      const { unlistable } = this.caches;
      return unlistable.length === 0 ? undefined : `without ${unlistable.join(', ')}`;
    });
    if (this.#webhooks !== undefined) server.ready.add('webhook', () => this.#webhooks?.check());
    return server;
  }

  async #serveSecurely(): Promise<AsyncDisposable | undefined> {
    const { world, status } = this.#options;
    const certificate = this.#webhooks?.certificate;
    if (status?.secure === undefined || certificate === undefined) return undefined;
    const access = new TokenAccess({ clock: world, client: this.client, logger: this.#log });
    const server = await StatusServer.start({
      clock: world,
      logger: this.#log,
      metrics: this.registry,
      logLevel: status.logLevel,
      certificate,
      authorize: (request, path) => access.assert(request, path),
      ...status.secure,
    });
    this.#webhooks?.onCertificate((next) => server.use(next));
    this.#log.info({ port: server.port }, 'Serving metrics over HTTPS to clients with a token');
    return server;
  }

  async #sync(caching: AbortSignal, signal: AbortSignal): Promise<void> {
    const { world, syncTimeoutMs = 120_000 } = this.#options;
    const over = new AbortController();
    const late = wait(world, syncTimeoutMs, over.signal).then(
      () => {
        const missing = this.caches.unsynced.join(', ');
        throw new Error(`no complete list of ${missing} after ${syncTimeoutMs / 1000} s; the log tells why`);
      },
      () => undefined,
    );
    const stopped = new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    try {
      await Promise.race([this.caches.start(caching), stopped, late]);
    } finally {
      over.abort();
    }
  }

  async #act(signal: AbortSignal, lost: AbortSignal): Promise<void> {
    const { world, graceMs = 30_000 } = this.#options;
    // A program of webhooks alone runs until it is stopped, too.
    const stopped = new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    const working = Promise.all([
      stopped,
      ...[...this.#workers.values()].map((worker) => worker.run(signal)),
    ]);
    const over = new AbortController();
    const { slackMs = graceMs } = this.#election ?? this.#sharding ?? {};
    const grace = new Promise<void>((resolve, reject) => {
      const begin = (ms: number) =>
        wait(world, ms, over.signal).then(
          // Going on would let it act beside its successor: the caller must end the process.
          () => reject(new Error(`a reconcile has not ended within ${ms / 1000} s of being asked to`)),
          () => resolve(),
        );
      // What is lost may be lost while it winds up after a stop: its successor begins no later for that.
      onAbort(lost, () => void begin(Math.min(graceMs, slackMs)));
      onAbort(signal, () => void begin(graceMs));
    });
    await Promise.race([working, grace]);
    // All has ended, and a successor may be waiting: events that are not told by now are not worth much of its time.
    const told = Promise.all(this.#recorders.map((recorder) => recorder.flush()));
    await Promise.race([told, wait(world, LAST_EVENTS_MS, over.signal).catch(() => undefined)]);
    over.abort();
  }
}

function onAbort(signal: AbortSignal, act: () => void): void {
  if (signal.aborted) act();
  else signal.addEventListener('abort', act, { once: true });
}
