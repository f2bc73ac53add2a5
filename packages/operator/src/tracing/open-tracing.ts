import { hostname } from 'node:os';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { wait } from '@vmwright/runtime';
import { openTelemetryTracer } from '@vmwright/runtime/open-telemetry';
import type { TracingSettings } from '../settings/tracing.ts';
import { ReportingExporter } from './reporting-exporter.ts';
import type { TracedProgram, Tracing } from './tracing.ts';

/** Time for which spans are collected before they are sent. */
const COLLECT_MS = 1_000;
/** Maximum time to send the last spans. A collector that does not answer must not delay the end of the program. */
const FLUSH_MS = 2_000;

/** Starts tracing. The SDK itself reads other settings, such as headers and certificates, from the variables OTEL_*. */
export function openTracing({ endpoint, ratio }: TracingSettings, program: TracedProgram): Tracing {
  const { world, log, name, version } = program;
  const hex = () => world.uuid().replaceAll('-', '');
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(
        resourceFromAttributes({
          'service.name': name,
          'service.version': version,
          'service.instance.id': hostname(),
        }),
      )
      .merge(detectResources({ detectors: [envDetector] })),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) }),
    idGenerator: { generateTraceId: hex, generateSpanId: () => hex().slice(0, 16) },
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new ReportingExporter(new OTLPTraceExporter(), log),
        scheduledDelayMillis: COLLECT_MS,
      }),
    ],
  });
  log.info({ endpoint, ratio }, 'Sending traces to a collector');
  return {
    tracer: openTelemetryTracer(provider.getTracer(name, version), world),
    [Symbol.asyncDispose]: async () => {
      const done = new AbortController();
      const flushed = provider.shutdown().catch(() => undefined); // ReportingExporter has logged the cause
      await Promise.race([flushed, wait(world, FLUSH_MS, done.signal).catch(() => undefined)]);
      done.abort();
    },
  };
}
