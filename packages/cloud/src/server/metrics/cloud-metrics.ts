import { SERVER_STATES, type ServerState } from '../../api/server.ts';
import { Registry } from './registry.ts';

const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Metrics of the cloud. Their names are stable, because dashboards and alerts use them. */
export class CloudMetrics {
  readonly #registry = new Registry();
  readonly #requests = this.#registry.histogram(
    'vmwright_cloud_http_request_duration_seconds',
    'Duration of HTTP requests by route, method and status code; code 0 means that the response was not delivered.',
    BUCKETS_SECONDS,
  );
  readonly #operations = this.#registry.counter(
    'vmwright_cloud_driver_operations_total',
    'Machine driver operations by operation and result.',
  );
  readonly #servers = this.#registry.gauge('vmwright_cloud_servers', 'Number of servers by state.');

  /** @param route path template of the OpenAPI document, or `other`; never the path itself, whose values are unbounded */
  requestHandled(route: string, method: string, code: number, seconds: number): void {
    this.#requests.observe({ route, method, code: String(code) }, seconds);
  }

  operationFinished(operation: 'start' | 'stop', result: 'success' | 'error'): void {
    this.#operations.add({ operation, result });
  }

  text(counts: ReadonlyMap<ServerState, number>): string {
    for (const state of SERVER_STATES) this.#servers.set({ state }, counts.get(state) ?? 0);
    return this.#registry.text();
  }

  static readonly contentType = Registry.contentType;
}
