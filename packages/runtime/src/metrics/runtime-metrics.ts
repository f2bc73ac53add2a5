import type { Counter, Registry } from '@vmwright/core';
import type { RequestObserver } from '../client/requests.ts';
import type { QueueObserver } from '../queue/work-queue.ts';
import { families } from './families.ts';

/** How a reconcile ended, in controller-runtime's words. */
export type ReconcileResult = 'success' | 'error' | 'requeue' | 'requeue_after';

/** Why one ended as an error, where that is counted on its own. */
export type ErrorCause = 'terminal' | 'panic' | 'timeout';

export interface ControllerMetrics {
  /** How many workers there are at most. */
  maxConcurrent(workers: number): void;
  started(): void;
  /** @param cause of an error, if it is one of these */
  finished(result: ReconcileResult, durationMs: number, cause?: ErrorCause): void;
}

/** What a queue tells when it is asked. */
export interface QueueState {
  readonly depth: number;
  /** Milliseconds that each key which is with a worker has been there. */
  readonly working: readonly number[];
}

export interface QueueMetrics extends QueueObserver {
  /** From where depth and work under way are read, at each look at the metrics. The queue wants its observer first. */
  read(state: QueueState): void;
}

export interface ElectionMetrics {
  leading(leads: boolean): void;
}

export interface ShardingMetrics {
  owns(shards: number, members: number): void;
}

export interface WebhookMetrics {
  /** A request has come; what is returned is to be called with the HTTP status of its answer. */
  started(): (code: number, durationMs: number) => void;
}

export interface CertificateMetrics {
  /** The serving certificate was read, or could not be. */
  read(succeeded: boolean): void;
  /** When the served certificate, or the authority that issued it, expires. */
  expires(certificate: 'serving' | 'authority', at: Date): void;
}

const RESULTS: readonly ReconcileResult[] = ['success', 'error', 'requeue', 'requeue_after'];

/**
 * The runtime's metrics under the names, labels and buckets of controller-runtime and client-go, so that dashboards and
 * alerts made for those work. Each function binds the series of one controller, queue, … and thereby sets them to 0.
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
    const most = all.maxConcurrent.with(labels);
    return {
      maxConcurrent: (workers) => most.set(workers),
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
          longest.set(times.reduce((most, ms) => Math.max(most, ms), 0) / 1000);
        }),
    };
  }

  /** @param origin of the API server */
  requests(origin: string): RequestObserver {
    const { host } = new URL(origin);
    // Looked up by two short texts instead of by their labels, which would have to be written out each time.
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
    for (const [method, code] of USUAL_ANSWERS) count(method, code);
    return {
      answered: (method, code, durationMs) => {
        const { counter, duration } = count(method, code);
        counter.inc();
        duration.observe(durationMs / 1000);
      },
    };
  }

  /** @param name of the lease */
  election(name: string): ElectionMetrics {
    const status = this.#families.masterStatus.with({ name });
    return { leading: (leads) => status.set(leads ? 1 : 0) };
  }

  /**
   * Ours alone, so only where there is one: controller-runtime has no sharding.
   * @param name of the sharding
   */
  sharding(name: string): ShardingMetrics {
    const labels = ['name'] as const;
    const owned = this.#registry
      .gauge({ name: 'sharding_owned_shards', help: 'How many shards this replica owns', labels })
      .with({ name });
    const help = 'How many replicas share, as this one sees it; 0 while it is none of them';
    const seen = this.#registry.gauge({ name: 'sharding_members', help, labels }).with({ name });
    return {
      owns: (shards, members) => {
        owned.set(shards);
        seen.set(members);
      },
    };
  }

  /** @param webhook its path */
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

  /** Once for a program: the gauge of expiry is ours alone, and there only where a certificate is served. */
  certificates(): CertificateMetrics {
    const expiry = this.#registry.gauge({
      name: 'vmwright_webhook_certificate_expiry_timestamp_seconds',
      help: 'When the certificate that the webhook server shows, or the authority that issued it, expires, in seconds since 1970',
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

const USUAL_ANSWERS = [
  ['GET', '200'],
  ['POST', '201'],
  ['PUT', '200'],
  ['PATCH', '200'],
  ['DELETE', '200'],
] as const;
