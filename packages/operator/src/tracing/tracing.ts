import type { Logger, Tracer, World } from '@vmwright/runtime';
import type { TracingSettings } from '../settings/tracing.ts';

/** A tracer that sends its spans to a collector. Disposing of it sends the remaining spans. */
export interface Tracing extends AsyncDisposable {
  readonly tracer: Tracer;
}

/** The program that tracing is started for. */
export interface TracedProgram {
  readonly world: World;
  readonly log: Logger;
  /** Service name in the spans, unless `OTEL_SERVICE_NAME` sets another one. */
  readonly name: string;
  readonly version: string;
}

/**
 * Starts tracing if the settings name a collector. Otherwise the OpenTelemetry SDK is not loaded, because that takes 90
 * ms and 8 MB of memory.
 * @returns undefined if tracing is off
 */
export async function startTracing(
  settings: TracingSettings | undefined,
  program: TracedProgram,
): Promise<Tracing | undefined> {
  if (settings === undefined) return undefined;
  const { openTracing } = await import('./open-tracing.ts');
  return openTracing(settings, program);
}
