import { type MetricDescription, Registry } from '@vmwright/core';
import { SERVER_STATES, type ServerState } from '../../api/server.ts';

/** Buckets of the request durations, in seconds. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Metrics of the cloud. Names and labels are a contract with dashboards. */
export class CloudMetrics {
  readonly #registry = new Registry();
  readonly #requests = this.#registry.histogram({
    name: 'vmwright_cloud_http_request_duration_seconds',
    help: 'Duration of HTTP requests by route, method and status code; code 0 is a response that was not delivered',
    labels: ['route', 'method', 'code'],
    buckets: BUCKETS,
  });
  readonly #operations = this.#registry.counter({
    name: 'vmwright_cloud_driver_operations_total',
    help: 'Operations of the machine driver by result',
    labels: ['operation', 'result'],
  });
  readonly #servers = this.#registry.gauge({
    name: 'vmwright_cloud_servers',
    help: 'Number of servers by state',
    labels: ['state'],
  });

  /** @param route path template of the API, or `other`; never the path itself, which has unbounded values */
  requestHandled(route: string, method: string, code: number, seconds: number): void {
    this.#requests.with({ route, method, code: String(code) }).observe(seconds);
  }

  operationFinished(operation: 'start' | 'stop', result: 'success' | 'error'): void {
    this.#operations.with({ operation, result }).inc();
  }

  /** Returns all metrics in Prometheus' text format. */
  text(counts: ReadonlyMap<ServerState, number>): string {
    for (const state of SERVER_STATES) this.#servers.with({ state }).set(counts.get(state) ?? 0);
    return this.#registry.text();
  }

  /** Describes all metrics, for the documentation. */
  describe(): readonly MetricDescription[] {
    return this.#registry.describe();
  }

  static readonly contentType = Registry.contentType;
}
