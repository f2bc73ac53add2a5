import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type Context,
  type Tracer as OpenTelemetryTracer,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { messageOf, type Tracer, type World } from '@vmwright/core';

/** The current span. */
interface Scope {
  readonly context: Context;
  /**
   * Difference between the wall clock and the monotonic clock at the start of the trace. All spans of the trace use it,
   * so that a jump of the wall clock does not distort their times.
   */
  readonly offset: number;
  isEnded: boolean;
}

/**
 * Returns a tracer that records with OpenTelemetry. All times come from `world`.
 *
 * The tracer keeps the current span in its own AsyncLocalStorage, not in OpenTelemetry's global context manager. So two
 * managers in one process do not share the current span, and other instrumentations do not see the current span.
 * @param tracer tracer of a provider; the id generator of the provider should use the same `world`
 */
export function openTelemetryTracer(
  tracer: OpenTelemetryTracer,
  world: Pick<World, 'now' | 'monotonic'>,
): Tracer {
  const scopes = new AsyncLocalStorage<Scope>();
  return {
    span: (name, attributes, work) => {
      const outer = scopes.getStore();
      const parent = outer?.context ?? ROOT_CONTEXT;
      const offset = outer?.offset ?? world.now() - world.monotonic();
      const span = tracer.startSpan(name, { attributes, startTime: offset + world.monotonic() }, parent);
      const scope: Scope = { context: trace.setSpan(parent, span), offset, isEnded: false };
      return scopes.run(scope, async () => {
        try {
          return await work({
            traceId: span.spanContext().traceId,
            set: (more) => void span.setAttributes(more),
          });
        } catch (error) {
          fail(span, messageOf(error));
          throw error;
        } finally {
          scope.isEnded = true;
          span.end(offset + world.monotonic());
        }
      });
    },
    call: ({ name, durationMs, isError, attributes }) => {
      const scope = scopes.getStore();
      if (scope === undefined || scope.isEnded) return;
      const now = scope.offset + world.monotonic();
      const options = { kind: SpanKind.CLIENT, attributes, startTime: now - durationMs };
      const span = tracer.startSpan(name, options, scope.context);
      if (isError) fail(span);
      span.end(now);
    },
  };
}

function fail(span: Span, message?: string): void {
  span.setStatus({ code: SpanStatusCode.ERROR, ...(message !== undefined && { message }) });
}
