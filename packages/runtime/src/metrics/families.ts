import { exponentialBuckets, type Registry } from '@vmwright/core';

/** controller-runtime's buckets for reconcile durations, in seconds. */
const RECONCILE_BUCKETS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5,
  1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
];
/** client-go's buckets for queue durations, in seconds. */
const QUEUE_BUCKETS = exponentialBuckets(1e-8, 10, 12);
/** client-go's buckets for request durations, in seconds. */
const REQUEST_BUCKETS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];

const CONTROLLER = ['controller'] as const;
const QUEUE = ['name', 'controller'] as const;

/**
 * Registers the metrics that controller-runtime and client-go have. Dashboards and alerts depend on their names, labels
 * and buckets.
 */
export function families(registry: Registry) {
  return {
    reconciles: registry.counter({
      name: 'controller_runtime_reconcile_total',
      help: 'Total number of reconciliations per controller and result',
      labels: ['controller', 'result'],
    }),
    errors: registry.counter({
      name: 'controller_runtime_reconcile_errors_total',
      help: 'Total number of reconciliation errors per controller',
      labels: CONTROLLER,
    }),
    terminalErrors: registry.counter({
      name: 'controller_runtime_terminal_reconcile_errors_total',
      help: 'Total number of terminal reconciliation errors per controller. A terminal error is not retried',
      labels: CONTROLLER,
    }),
    panics: registry.counter({
      name: 'controller_runtime_reconcile_panics_total',
      help: 'Total number of reconciliation panics (unexpected exceptions) per controller',
      labels: CONTROLLER,
    }),
    timeouts: registry.counter({
      name: 'controller_runtime_reconcile_timeouts_total',
      help: 'Total number of reconciliation timeouts per controller',
      labels: CONTROLLER,
    }),
    reconcileTime: registry.histogram({
      name: 'controller_runtime_reconcile_time_seconds',
      help: 'Length of time per reconciliation per controller',
      labels: CONTROLLER,
      buckets: RECONCILE_BUCKETS,
    }),
    maxConcurrent: registry.gauge({
      name: 'controller_runtime_max_concurrent_reconciles',
      help: 'Maximum number of concurrent reconciles per controller',
      labels: CONTROLLER,
    }),
    activeWorkers: registry.gauge({
      name: 'controller_runtime_active_workers',
      help: 'Number of currently used workers per controller',
      labels: CONTROLLER,
    }),
    depth: registry.gauge({
      name: 'workqueue_depth',
      help: 'Current depth of workqueue: number of items that wait for a worker',
      labels: QUEUE,
    }),
    adds: registry.counter({
      name: 'workqueue_adds_total',
      help: 'Total number of adds handled by workqueue',
      labels: QUEUE,
    }),
    queueDuration: registry.histogram({
      name: 'workqueue_queue_duration_seconds',
      help: 'How long in seconds an item stays in workqueue before a worker takes the item',
      labels: QUEUE,
      buckets: QUEUE_BUCKETS,
    }),
    workDuration: registry.histogram({
      name: 'workqueue_work_duration_seconds',
      help: 'How long in seconds processing an item from workqueue takes',
      labels: QUEUE,
      buckets: QUEUE_BUCKETS,
    }),
    unfinished: registry.gauge({
      name: 'workqueue_unfinished_work_seconds',
      help: 'How many seconds of work is in progress and has not been observed by workqueue_work_duration_seconds. Large values indicate stuck workers',
      labels: QUEUE,
    }),
    longest: registry.gauge({
      name: 'workqueue_longest_running_processor_seconds',
      help: 'How many seconds the longest running processor for workqueue has been running',
      labels: QUEUE,
    }),
    retries: registry.counter({
      name: 'workqueue_retries_total',
      help: 'Total number of retries handled by workqueue',
      labels: QUEUE,
    }),
    requests: registry.counter({
      name: 'rest_client_requests_total',
      help: 'Number of HTTP requests, partitioned by status code (<error> without a response), method, and host',
      labels: ['code', 'method', 'host'],
    }),
    requestDuration: registry.histogram({
      name: 'rest_client_request_duration_seconds',
      help: 'Request latency in seconds, partitioned by verb and host',
      labels: ['verb', 'host'],
      buckets: REQUEST_BUCKETS,
    }),
    masterStatus: registry.gauge({
      name: 'leader_election_master_status',
      help: 'Whether this process is the leader of the named lease: 1 indicates leader, 0 indicates standby',
      labels: ['name'],
    }),
    webhookLatency: registry.histogram({
      name: 'controller_runtime_webhook_latency_seconds',
      help: 'Latency in seconds of processing webhook requests',
      labels: ['webhook'],
    }),
    webhookRequests: registry.counter({
      name: 'controller_runtime_webhook_requests_total',
      help: 'Total number of webhook requests by HTTP status code',
      labels: ['webhook', 'code'],
    }),
    webhookInFlight: registry.gauge({
      name: 'controller_runtime_webhook_requests_in_flight',
      help: 'Current number of webhook requests being served',
      labels: ['webhook'],
    }),
    certificateReads: registry.counter({
      name: 'certwatcher_read_certificate_total',
      help: 'Total number of certificate reads',
    }),
    certificateErrors: registry.counter({
      name: 'certwatcher_read_certificate_errors_total',
      help: 'Total number of certificate read errors',
    }),
  };
}
