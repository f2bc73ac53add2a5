import { exponentialBuckets, type Registry } from '@vmwright/core';

/** Seconds, as controller-runtime has them. */
const RECONCILE_BUCKETS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5,
  1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
];
const QUEUE_BUCKETS = exponentialBuckets(1e-8, 10, 12);
/** As client-go has them. */
const REQUEST_BUCKETS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];

const CONTROLLER = ['controller'] as const;
const QUEUE = ['name', 'controller'] as const;

/** Declares them all. The names, labels and buckets are a contract with dashboards and alerts out there. */
export function families(registry: Registry) {
  return {
    reconciles: registry.counter({
      name: 'controller_runtime_reconcile_total',
      help: 'Reconciles of a controller, by how they ended',
      labels: ['controller', 'result'],
    }),
    errors: registry.counter({
      name: 'controller_runtime_reconcile_errors_total',
      help: 'Reconciles of a controller that ended in an error',
      labels: CONTROLLER,
    }),
    terminalErrors: registry.counter({
      name: 'controller_runtime_terminal_reconcile_errors_total',
      help: 'Reconciles of a controller that ended in an error which is not tried again',
      labels: CONTROLLER,
    }),
    panics: registry.counter({
      name: 'controller_runtime_reconcile_panics_total',
      help: 'Reconciles of a controller that threw what is no error of its own making',
      labels: CONTROLLER,
    }),
    timeouts: registry.counter({
      name: 'controller_runtime_reconcile_timeouts_total',
      help: 'Reconciles of a controller that did not end in time',
      labels: CONTROLLER,
    }),
    reconcileTime: registry.histogram({
      name: 'controller_runtime_reconcile_time_seconds',
      help: 'How long the reconciles of a controller take',
      labels: CONTROLLER,
      buckets: RECONCILE_BUCKETS,
    }),
    maxConcurrent: registry.gauge({
      name: 'controller_runtime_max_concurrent_reconciles',
      help: 'How many reconciles of a controller may run at a time',
      labels: CONTROLLER,
    }),
    activeWorkers: registry.gauge({
      name: 'controller_runtime_active_workers',
      help: 'How many reconciles of a controller are running',
      labels: CONTROLLER,
    }),
    depth: registry.gauge({
      name: 'workqueue_depth',
      help: 'How many keys are ready and wait for a worker',
      labels: QUEUE,
    }),
    adds: registry.counter({
      name: 'workqueue_adds_total',
      help: 'Keys that were added to the queue',
      labels: QUEUE,
    }),
    queueDuration: registry.histogram({
      name: 'workqueue_queue_duration_seconds',
      help: 'How long a ready key waits for a worker',
      labels: QUEUE,
      buckets: QUEUE_BUCKETS,
    }),
    workDuration: registry.histogram({
      name: 'workqueue_work_duration_seconds',
      help: 'How long a key is with a worker',
      labels: QUEUE,
      buckets: QUEUE_BUCKETS,
    }),
    unfinished: registry.gauge({
      name: 'workqueue_unfinished_work_seconds',
      help: 'How long the keys that are with a worker have been there, added up; what hangs makes it grow',
      labels: QUEUE,
    }),
    longest: registry.gauge({
      name: 'workqueue_longest_running_processor_seconds',
      help: 'How long the key that is with a worker the longest has been there',
      labels: QUEUE,
    }),
    retries: registry.counter({
      name: 'workqueue_retries_total',
      help: 'Keys that were added again because they failed',
      labels: QUEUE,
    }),
    requests: registry.counter({
      name: 'rest_client_requests_total',
      help: 'Requests to the API server, by the status of the answer (<error> for none), method and host',
      labels: ['code', 'method', 'host'],
    }),
    requestDuration: registry.histogram({
      name: 'rest_client_request_duration_seconds',
      help: 'How long the API server takes to answer, by method and host',
      labels: ['verb', 'host'],
      buckets: REQUEST_BUCKETS,
    }),
    masterStatus: registry.gauge({
      name: 'leader_election_master_status',
      help: 'Whether this process is the leader by the lease of that name: 1 if so, 0 if it stands by',
      labels: ['name'],
    }),
    webhookLatency: registry.histogram({
      name: 'controller_runtime_webhook_latency_seconds',
      help: 'How long a webhook takes to answer',
      labels: ['webhook'],
    }),
    webhookRequests: registry.counter({
      name: 'controller_runtime_webhook_requests_total',
      help: 'Requests to a webhook, by the HTTP status of the answer',
      labels: ['webhook', 'code'],
    }),
    webhookInFlight: registry.gauge({
      name: 'controller_runtime_webhook_requests_in_flight',
      help: 'Requests that a webhook is answering',
      labels: ['webhook'],
    }),
    certificateReads: registry.counter({
      name: 'certwatcher_read_certificate_total',
      help: 'How often the serving certificate was read',
    }),
    certificateErrors: registry.counter({
      name: 'certwatcher_read_certificate_errors_total',
      help: 'How often the serving certificate could not be read',
    }),
  };
}
