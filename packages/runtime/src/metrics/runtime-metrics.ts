import type { Counter, Registry } from '@vmwright/core';
import type { RequestObserver } from '../client/requests.ts';
import type { QueueObserver } from '../queue/work-queue.ts';
import { families } from './families.ts';

/** Result of a reconcile, as in controller-runtime's `result` label. */
export type ReconcileResult = 'success' | 'error' | 'requeue' | 'requeue_after';

/** Causes of a failed reconcile that have a counter of their own. */
export type ErrorCause = 'terminal' | 'panic' | 'timeout';

export interface ControllerMetrics {
  /** Sets the maximum number of concurrent reconciles. */
  maxConcurrent(workers: number): void;
  started(): void;
  /** @param cause cause of the error, if that cause has a counter of its own */
  finished(result: ReconcileResult, durationMs: number, cause?: ErrorCause): void;
}

/** Queue state that is read at scrape time. */
export interface QueueState {
  readonly depth: number;
  /** Time for which each key in progress has been processed, in milliseconds. */
  readonly working: readonly number[];
}

export interface QueueMetrics extends QueueObserver {
  /**
   * Sets the queue that is read at each scrape. Called after the queue is constructed, because its constructor needs
   * this observer.
   */
  read(state: QueueState): void;
}

export interface ElectionMetrics {
  leading(leads: boolean): void;
}

export interface ShardingMetrics {
  owns(shards: number, members: number): void;
}

export interface WebhookMetrics {
  /** Records the start of a request. Returns a function that records its HTTP status and duration. */
  started(): (code: number, durationMs: number) => void;
}

export interface CertificateMetrics {
  /** Records an attempt to read the serving certificate. */
  read(succeeded: boolean): void;
  /** Sets the expiry of the serving certificate or of its CA. */
  expires(certificate: 'serving' | 'authority', at: Date): void;
}

const RESULTS: readonly ReconcileResult[] = ['success', 'error', 'requeue', 'requeue_after'];

/**
 * Metrics of the runtime with the names, labels and buckets of controller-runtime and client-go, so that existing
 * dashboards and alerts work. Each method creates the series of one controller, queue, Lease or webhook, with the
 * initial value 0.
 */
export class RuntimeMetrics {
  readonly #families: ReturnType<typeof families>;
  readonly #registry: Registry;

  constructor(registry: Registry) {
    this.#registry = registry;
    this.#families = families(registry);
  }

  controller(controller: string): ControllerMetrics {
    const all = this.#families;
    const labels = { controller };
    const results = new Map(
      RESULTS.map((result) => [result, all.reconciles.with({ controller, result })] as const),
    );
    const causes: Readonly<Record<ErrorCause, Counter>> = {
      terminal: all.terminalErrors.with(labels),
      panic: all.panics.with(labels),
      timeout: all.timeouts.with(labels),
    };
    const errors = all.errors.with(labels);
    const time = all.reconcileTime.with(labels);
    const active = all.activeWorkers.with(labels);
    const maxConcurrent = all.maxConcurrent.with(labels);
    return {
      maxConcurrent: (workers) => maxConcurrent.set(workers),
      started: () => active.inc(),
      finished: (result, durationMs, cause) => {
        active.dec();
        time.observe(durationMs / 1000);
        results.get(result)?.inc();
        if (result === 'error') errors.inc();
        if (cause !== undefined) causes[cause].inc();
      },
    };
  }

  queue(name: string): QueueMetrics {
    const all = this.#families;
    const labels = { name, controller: name };
    const [adds, retries] = [all.adds.with(labels), all.retries.with(labels)];
    const [waiting, working] = [all.queueDuration.with(labels), all.workDuration.with(labels)];
    const [depth, unfinished, longest] = [
      all.depth.with(labels),
      all.unfinished.with(labels),
      all.longest.with(labels),
    ];
    return {
      added: () => adds.inc(),
      taken: (waitedMs) => waiting.observe(waitedMs / 1000),
      finished: (workedMs) => working.observe(workedMs / 1000),
      retried: () => retries.inc(),
      read: (state) =>
        this.#registry.beforeText(() => {
          const times = state.working;
          depth.set(state.depth);
          unfinished.set(times.reduce((sum, ms) => sum + ms, 0) / 1000);
          longest.set(times.reduce((max, ms) => Math.max(max, ms), 0) / 1000);
        }),
    };
  }

  /** @param origin origin of the API server */
  requests(origin: string): RequestObserver {
    const { host } = new URL(origin);
    // Series are looked up by method and code, because formatting the labels for every request is slow.
    const methods = new Map<string, ReturnType<typeof bind>>();
    const bind = (method: string) => ({
      duration: this.#families.requestDuration.with({ verb: method, host }),
      codes: new Map<string, Counter>(),
    });
    const count = (method: string, code: string) => {
      const bound = methods.get(method) ?? bind(method);
      methods.set(method, bound);
      const counter = bound.codes.get(code) ?? this.#families.requests.with({ code, method, host });
      bound.codes.set(code, counter);
      return { counter, duration: bound.duration };
    };
    for (const [method, code] of COMMON_RESPONSES) count(method, code);
    return {
      answered: (method, code, durationMs) => {
        const { counter, duration } = count(method, code);
        counter.inc();
        duration.observe(durationMs / 1000);
      },
    };
  }

  /** @param name name of the Lease */
  election(name: string): ElectionMetrics {
    const status = this.#families.masterStatus.with({ name });
    return { leading: (leads) => status.set(leads ? 1 : 0) };
  }

  /**
   * Registers the sharding metrics, which controller-runtime does not have. Call it only if sharding is used.
   * @param name `ShardingOptions.name`, the value of the label `name`
   */
  sharding(name: string): ShardingMetrics {
    const labels = ['name'] as const;
    const owned = this.#registry
      .gauge({ name: 'sharding_owned_shards', help: 'Number of shards that this replica owns', labels })
      .with({ name });
    const help =
      'Number of replicas that share the work, as observed by this replica; 0 while it is not a member';
    const observed = this.#registry.gauge({ name: 'sharding_members', help, labels }).with({ name });
    return {
      owns: (shards, members) => {
        owned.set(shards);
        observed.set(members);
      },
    };
  }

  /** @param webhook path of the webhook */
  webhook(webhook: string): WebhookMetrics {
    const all = this.#families;
    const latency = all.webhookLatency.with({ webhook });
    const inFlight = all.webhookInFlight.with({ webhook });
    const total = (code: string) => all.webhookRequests.with({ webhook, code });
    for (const code of ['200', '500']) total(code);
    return {
      started: () => {
        inFlight.inc();
        return (code, durationMs) => {
          inFlight.dec();
          latency.observe(durationMs / 1000);
          total(String(code)).inc();
        };
      },
    };
  }

  /** Registers the expiry gauge, which controller-runtime does not have. Call it once per registry. */
  certificates(): CertificateMetrics {
    const expiry = this.#registry.gauge({
      name: 'vmwright_webhook_certificate_expiry_timestamp_seconds',
      help: 'Expiry of the webhook serving certificate (serving) and of its CA (authority) since the Unix epoch in seconds',
      labels: ['certificate'],
    });
    const reads = this.#families.certificateReads.with({});
    const errors = this.#families.certificateErrors.with({});
    return {
      read: (succeeded) => {
        reads.inc();
        if (!succeeded) errors.inc();
      },
      expires: (certificate, at) => expiry.with({ certificate }).set(at.getTime() / 1000),
    };
  }
}

/** Pairs of method and status code for which a series exists before the first such API request. */
const COMMON_RESPONSES = [
  ['GET', '200'],
  ['POST', '201'],
  ['PUT', '200'],
  ['PATCH', '200'],
  ['DELETE', '200'],
] as const;
