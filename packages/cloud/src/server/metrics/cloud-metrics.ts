import { SERVER_STATES, type ServerState } from '../../api/server.ts';
import { Registry } from './registry.ts';

/** Seconds. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** What the cloud tells of itself. The names are a contract with dashboards. */
export class CloudMetrics {
  readonly #registry = new Registry();
  readonly #requests = this.#registry.histogram(
    'vmwright_cloud_http_request_duration_seconds',
    'How long requests took to answer, by route, method and code; a code of 0 is an answer that was not delivered',
    BUCKETS,
  );
  readonly #operations = this.#registry.counter(
    'vmwright_cloud_driver_operations_total',
    'What was asked of the driver of machines, by how it ended',
  );
  readonly #servers = this.#registry.gauge('vmwright_cloud_servers', 'How many servers are in which state');

  /** @param route as the API's document has it, or `other`: never the path itself, which has no end of values */
  answered(route: string, method: string, code: number, seconds: number): void {
    this.#requests.observe({ route, method, code: String(code) }, seconds);
  }

  operated(operation: 'start' | 'stop', result: 'success' | 'error'): void {
    this.#operations.add({ operation, result });
  }

  text(counts: ReadonlyMap<ServerState, number>): string {
    for (const state of SERVER_STATES) this.#servers.set({ state }, counts.get(state) ?? 0);
    return this.#registry.text();
  }

  static readonly contentType = Registry.contentType;
}
