/** Building blocks shared by all vmwright packages. Independent of Kubernetes, vCenter and VMs. */
export { Deadline } from './async/deadline.ts';
export { JoinedSignal } from './async/joined-signal.ts';
export { unlessAborted } from './async/unless-aborted.ts';
export { wait } from './async/wait.ts';
export { type BackoffOptions, backoffMs, exponentialMs, jittered } from './backoff/backoff.ts';
export { messageOf } from './errors/message-of.ts';
export { systemCode } from './errors/system-code.ts';
export { Fence, FenceClosedError, type FenceOptions } from './fence/fence.ts';
export { collectingLogger, type LogLine } from './log/collecting-logger.ts';
export { type FormattedLine, type JsonLoggerOptions, jsonLogger } from './log/json-logger.ts';
export {
  isLevel,
  LEVELS,
  type Level,
  type LogFields,
  type Logger,
  type LogLevel,
  silentLogger,
} from './log/logger.ts';
export { isSecretName } from './log/plain.ts';
export { textLine } from './log/text-line.ts';
export { STANDARD_ERROR, STANDARD_OUTPUT, writeAll } from './log/write-all.ts';
export {
  Family,
  type FamilyOptions,
  type MetricDescription,
  MetricError,
  type MetricType,
  type Series,
} from './metrics/family.ts';
export { type ProcessMetricsOptions, processMetrics } from './metrics/process-metrics.ts';
export { exponentialBuckets, type HistogramOptions, Registry } from './metrics/registry.ts';
export { Counter, Gauge, Histogram } from './metrics/series.ts';
export type { ActiveSpan, SpanAttributes, TracedCall, Tracer } from './trace/tracer.ts';
export { nodeWorld } from './world/node/node-world.ts';
export { stopSignal } from './world/node/stop-signal.ts';
export { type HttpProxy, ProxyError, proxyFrom } from './world/proxy.ts';
export { ResponseTooLargeError } from './world/response-too-large.ts';
export * from './world/world.ts';
