import { readdirSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Clock } from '../world/world.ts';
import type { Registry } from './registry.ts';

export interface ProcessMetricsOptions {
  readonly clock: Pick<Clock, 'now'>;
  /** Whether to measure the event-loop lag, which needs a timer every 20 ms. @default false */
  readonly eventLoop?: boolean;
}

/**
 * Registers metrics of the process and of Node.js under the names that the Prometheus client libraries use. Values are
 * read at scrape time. Do not use it in the simulation: it measures the real process.
 */
export function processMetrics(
  registry: Registry,
  { clock, eventLoop = false }: ProcessMetricsOptions,
): void {
  const gauge = (name: string, help: string) => registry.gauge({ name, help }).with({});
  const cpu = registry
    .counter({ name: 'process_cpu_seconds_total', help: 'Total user and system CPU time spent in seconds' })
    .with({});
  const resident = gauge('process_resident_memory_bytes', 'Resident memory size in bytes');
  const heapTotal = gauge('nodejs_heap_size_total_bytes', 'Allocated size of the V8 heap in bytes');
  const heapUsed = gauge('nodejs_heap_size_used_bytes', 'Used size of the V8 heap in bytes');
  const external = gauge(
    'nodejs_external_memory_bytes',
    'Memory of buffers and other objects outside the V8 heap in bytes',
  );
  gauge('process_start_time_seconds', 'Start time of the process since the Unix epoch in seconds').set(
    clock.now() / 1000 - process.uptime(),
  );
  registry
    .gauge({
      name: 'nodejs_version_info',
      help: 'Always 1. The label version has the version of Node.js',
      labels: ['version'],
    })
    .with({ version: process.version })
    .set(1);

  let counted = 0;
  registry.beforeText(() => {
    const { user, system } = process.cpuUsage();
    const seconds = (user + system) / 1e6;
    cpu.inc(Math.max(seconds - counted, 0));
    counted = Math.max(seconds, counted);
    const memory = process.memoryUsage();
    resident.set(memory.rss);
    heapTotal.set(memory.heapTotal);
    heapUsed.set(memory.heapUsed);
    external.set(memory.external);
  });
  const files = gauge('process_open_fds', 'Number of open file descriptors; NaN where /proc does not exist');
  registry.beforeText(() => files.set(openFiles() ?? Number.NaN));
  if (eventLoop) eventLoopMetrics(registry);
}

/** Returns the number of open file descriptors; undefined where `/proc` does not exist. */
function openFiles(): number | undefined {
  try {
    return readdirSync('/proc/self/fd').length - 1; // does not count the descriptor of the directory itself
  } catch {
    return undefined;
  }
}

const RESOLUTION_MS = 20;
/** Converts the nanoseconds between two ticks to the seconds by which the second tick was late. */
const lagSeconds = (ns: number) => Math.max(ns / 1e9 - RESOLUTION_MS / 1e3, 0);

function eventLoopMetrics(registry: Registry): void {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  const gauge = (name: string, help: string) =>
    registry.gauge({ name: `nodejs_eventloop_lag_${name}_seconds`, help }).with({});
  const mean = gauge('mean', 'Mean event-loop lag since the last scrape in seconds');
  const p99 = gauge('p99', '99th percentile of the event-loop lag since the last scrape in seconds');
  const max = gauge('max', 'Maximum event-loop lag since the last scrape in seconds');
  registry.beforeText(() => {
    const { count } = delay;
    mean.set(count === 0 ? 0 : lagSeconds(delay.mean));
    p99.set(count === 0 ? 0 : lagSeconds(delay.percentile(99)));
    max.set(count === 0 ? 0 : lagSeconds(delay.max));
    delay.reset();
  });
  delay.enable();
}
