import { processMetrics, Registry } from '@vmwright/core';
import { parseExposition, sampleOf, VirtualClock } from '@vmwright/core/testing';
import { test } from '@vmwright/testbed/vitest';
import { describe, expect } from 'vitest';
import { connect } from '../../test/connect.ts';
import { WorkQueue } from '../queue/work-queue.ts';
import { RuntimeMetrics } from './runtime-metrics.ts';

function start() {
  const registry = new Registry();
  return { registry, metrics: new RuntimeMetrics(registry) };
}

/** Metrics and labels that dashboards for controller-runtime rely on. */
const EXPECTED: Readonly<Record<string, readonly string[]>> = {
  controller_runtime_reconcile_total: ['controller', 'result'],
  controller_runtime_reconcile_errors_total: ['controller'],
  controller_runtime_terminal_reconcile_errors_total: ['controller'],
  controller_runtime_reconcile_panics_total: ['controller'],
  controller_runtime_reconcile_timeouts_total: ['controller'],
  controller_runtime_reconcile_time_seconds: ['controller'],
  controller_runtime_max_concurrent_reconciles: ['controller'],
  controller_runtime_active_workers: ['controller'],
  controller_runtime_webhook_latency_seconds: ['webhook'],
  controller_runtime_webhook_requests_total: ['code', 'webhook'],
  controller_runtime_webhook_requests_in_flight: ['webhook'],
  workqueue_depth: ['controller', 'name'],
  workqueue_adds_total: ['controller', 'name'],
  workqueue_queue_duration_seconds: ['controller', 'name'],
  workqueue_work_duration_seconds: ['controller', 'name'],
  workqueue_unfinished_work_seconds: ['controller', 'name'],
  workqueue_longest_running_processor_seconds: ['controller', 'name'],
  workqueue_retries_total: ['controller', 'name'],
  rest_client_requests_total: ['code', 'host', 'method'],
  rest_client_request_duration_seconds: ['host', 'verb'],
  leader_election_master_status: ['name'],
  certwatcher_read_certificate_total: [],
  certwatcher_read_certificate_errors_total: [],
  // This metric is specific to this runtime. It has no series until a certificate is served.
  vmwright_webhook_certificate_expiry_timestamp_seconds: [],
};

test('the metrics that dashboards for controller-runtime rely on exist with their labels and start at 0', () => {
  const { registry, metrics } = start();
  metrics.controller('vm');
  metrics.queue('vm');
  metrics.requests('https://10.0.0.1:6443');
  metrics.election('vmwright');
  metrics.webhook('/validate');
  metrics.certificates();
  const parsed = parseExposition(registry.text());
  const found = Object.fromEntries(
    [...parsed].map(([name, { samples }]) => {
      const { le, ...labels } = samples[0]?.labels ?? {};
      return [name, Object.keys(labels).sort()];
    }),
  );
  expect(found).toEqual(EXPECTED);
  for (const { samples } of parsed.values()) for (const { value } of samples) expect(value).toBe(0);
  const results = parsed
    .get('controller_runtime_reconcile_total')
    ?.samples.map(({ labels }) => labels.result);
  expect(results).toEqual(['success', 'error', 'requeue', 'requeue_after']);
});

test('reconciles are counted by result and error cause, and timed', () => {
  const { registry, metrics } = start();
  const vm = metrics.controller('vm');
  vm.maxConcurrent(4);
  for (let i = 0; i < 6; i++) vm.started();
  vm.finished('success', 20);
  vm.finished('requeue_after', 200);
  vm.finished('error', 2_000, 'terminal');
  vm.finished('error', 2_000, 'panic');
  vm.finished('error', 70_000, 'timeout');
  const text = registry.text();
  const labels = { controller: 'vm' };
  const value = (name: string, more = {}) =>
    sampleOf(text, `controller_runtime_${name}`, { ...labels, ...more });
  expect(value('max_concurrent_reconciles')).toBe(4);
  expect(value('active_workers')).toBe(1);
  expect(value('reconcile_total', { result: 'success' })).toBe(1);
  expect(value('reconcile_total', { result: 'requeue_after' })).toBe(1);
  expect(value('reconcile_total', { result: 'error' })).toBe(3);
  expect(value('reconcile_errors_total')).toBe(3);
  expect(value('terminal_reconcile_errors_total')).toBe(1);
  expect(value('reconcile_panics_total')).toBe(1);
  expect(value('reconcile_timeouts_total')).toBe(1);
  expect(value('reconcile_time_seconds_bucket', { le: '0.025' })).toBe(1);
  expect(value('reconcile_time_seconds_bucket', { le: '60' })).toBe(4);
  expect(value('reconcile_time_seconds_count')).toBe(5);
});

test('queue metrics reflect the state of the queue at scrape time', () => {
  const { registry, metrics } = start();
  const observer = metrics.queue('vm');
  const clock = new VirtualClock();
  const queue = new WorkQueue({ clock, observer });
  observer.read(queue);
  const value = (name: string) =>
    sampleOf(registry.text(), `workqueue_${name}`, { name: 'vm', controller: 'vm' });
  for (const key of ['a', 'b', 'c']) queue.add(key);
  clock.advance(500);
  queue.tryTake();
  clock.advance(1_000);
  queue.tryTake();
  clock.advance(2_000);
  expect(value('depth')).toBe(1);
  expect(value('adds_total')).toBe(3);
  expect(value('queue_duration_seconds_sum')).toBe(2);
  expect(value('unfinished_work_seconds')).toBe(5);
  expect(value('longest_running_processor_seconds')).toBe(3);

  queue.retry('a');
  queue.done('a');
  queue.done('b');
  expect(value('retries_total')).toBe(1);
  expect(value('work_duration_seconds_sum')).toBe(5);
  expect(value('unfinished_work_seconds')).toBe(0);
  expect(value('longest_running_processor_seconds')).toBe(0);
});

test('requests to the API server are counted by status code and timed', async ({ cluster, namespace }) => {
  const { registry, metrics } = start();
  const { server } = cluster.access;
  const { host } = new URL(server);
  await using client = await connect(cluster.kubeconfig, { observer: metrics.requests(server) });
  await client.raw('/version');
  await expect(client.raw(`/api/v1/namespaces/${namespace}/configmaps/none`)).rejects.toThrow();
  const text = registry.text();
  const requests = (code: string) =>
    sampleOf(text, 'rest_client_requests_total', { code, method: 'GET', host });
  expect([requests('200'), requests('404')]).toEqual([1, 1]);
  expect(sampleOf(text, 'rest_client_request_duration_seconds_count', { verb: 'GET', host })).toBe(2);
});

test('metrics show the leadership, the webhook requests, how often certificates are read, and when they expire', () => {
  const { registry, metrics } = start();
  const election = metrics.election('lease');
  election.leading(true);
  const master = () => sampleOf(registry.text(), 'leader_election_master_status', { name: 'lease' });
  expect(master()).toBe(1);
  election.leading(false);
  expect(master()).toBe(0);

  const webhook = metrics.webhook('/validate');
  const first = webhook.started();
  webhook.started();
  first(400, 30);
  const text = registry.text();
  const labels = { webhook: '/validate' };
  expect(sampleOf(text, 'controller_runtime_webhook_requests_in_flight', labels)).toBe(1);
  expect(sampleOf(text, 'controller_runtime_webhook_requests_total', { ...labels, code: '400' })).toBe(1);
  expect(sampleOf(text, 'controller_runtime_webhook_latency_seconds_sum', labels)).toBe(0.03);

  const certificates = metrics.certificates();
  certificates.read(true);
  certificates.read(false);
  expect(sampleOf(registry.text(), 'certwatcher_read_certificate_total')).toBe(2);
  expect(sampleOf(registry.text(), 'certwatcher_read_certificate_errors_total')).toBe(1);
  certificates.expires('serving', new Date('2030-01-01T00:00:00Z'));
  const expiry = 'vmwright_webhook_certificate_expiry_timestamp_seconds';
  expect(sampleOf(registry.text(), expiry, { certificate: 'serving' })).toBe(Date.UTC(2030) / 1000);
});

describe('process metrics', () => {
  test('process metrics expose start time, CPU, memory, open files and version', () => {
    const registry = new Registry();
    const now = Date.now();
    processMetrics(registry, { clock: { now: () => now } });
    const text = registry.text();
    expect(sampleOf(text, 'process_start_time_seconds')).toBeLessThan(now / 1000);
    for (const name of [
      'process_cpu_seconds_total',
      'process_resident_memory_bytes',
      'nodejs_heap_size_total_bytes',
      'nodejs_heap_size_used_bytes',
      'nodejs_external_memory_bytes',
    ])
      expect(sampleOf(text, name), name).toBeGreaterThan(0);
    expect(sampleOf(text, 'nodejs_version_info', { version: process.version })).toBe(1);
    if (process.platform === 'linux') expect(sampleOf(text, 'process_open_fds')).toBeGreaterThan(2);
    expect(text).not.toContain('eventloop');
    const cpu = sampleOf(text, 'process_cpu_seconds_total') ?? 0;
    expect(sampleOf(registry.text(), 'process_cpu_seconds_total')).toBeGreaterThanOrEqual(cpu);
  });

  test('process metrics expose the event-loop lag if enabled', () => {
    const registry = new Registry();
    processMetrics(registry, { clock: { now: () => 0 }, eventLoop: true });
    const parsed = parseExposition(registry.text());
    for (const statistic of ['mean', 'p99', 'max'])
      expect(parsed.get(`nodejs_eventloop_lag_${statistic}_seconds`)?.samples[0]?.value).toBe(0);
  });
});
