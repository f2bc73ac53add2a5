import { readdirSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Clock } from '../world/world.ts';
import type { Registry } from './registry.ts';

export interface ProcessMetricsOptions {
  readonly clock: Pick<Clock, 'now'>;
  /** Measure how late the event loop is, which takes a timer every 20 ms. @default false */
  readonly eventLoop?: boolean;
}

/**
 * The process and Node themselves, under the names that Prometheus' own clients use. All is read when somebody looks.
 * Not for the simulation: it tells of this very process.
 */
export function processMetrics(
  registry: Registry,
  { clock, eventLoop = false }: ProcessMetricsOptions,
): void {
  const gauge = (name: string, help: string) => registry.gauge({ name, help }).with({});
  const cpu = registry
    .counter({ name: 'process_cpu_seconds_total', help: 'CPU time of the process, user and system' })
    .with({});
  const resident = gauge('process_resident_memory_bytes', 'Memory of the process that is in RAM');
  const heapTotal = gauge('nodejs_heap_size_total_bytes', 'JavaScript heap, as large as it is');
  const heapUsed = gauge('nodejs_heap_size_used_bytes', 'JavaScript heap that is in use');
  const external = gauge(
    'nodejs_external_memory_bytes',
    'Memory of buffers and other things beside the heap',
  );
  gauge('process_start_time_seconds', 'When the process started, in seconds since 1970').set(
    clock.now() / 1000 - process.uptime(),
  );
  registry
    .gauge({ name: 'nodejs_version_info', help: 'The version of Node', labels: ['version'] })
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
  if (openFiles() !== undefined) {
    const files = gauge('process_open_fds', 'Files and connections that the process has open');
    registry.beforeText(() => files.set(openFiles() ?? 0));
  }
  if (eventLoop) eventLoopMetrics(registry);
}

/** Undefined where the system does not tell, which all but Linux do not. */
function openFiles(): number | undefined {
  try {
    return readdirSync('/proc/self/fd').length - 1; // without the one that reads the folder
  } catch {
    return undefined;
  }
}

const RESOLUTION_MS = 20;
/** From nanoseconds between two ticks to the seconds that the later one was late. */
const late = (ns: number) => Math.max(ns / 1e9 - RESOLUTION_MS / 1e3, 0);

function eventLoopMetrics(registry: Registry): void {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  const gauge = (name: string, help: string) =>
    registry.gauge({ name: `nodejs_eventloop_lag_${name}_seconds`, help }).with({});
  const mean = gauge('mean', 'How late timers went off since the last look, on average');
  const p99 = gauge('p99', 'How late timers went off since the last look, all but one in a hundred');
  const max = gauge('max', 'How late timers went off since the last look, at most');
  registry.beforeText(() => {
    const { count } = delay;
    mean.set(count === 0 ? 0 : late(delay.mean));
    p99.set(count === 0 ? 0 : late(delay.percentile(99)));
    max.set(count === 0 ? 0 : late(delay.max));
    delay.reset();
  });
  delay.enable();
}
