import {
  type Context,
  type Tracer as OpenTelemetryTracer,
  type Span,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { expect, test } from 'vitest';
import { openTelemetryTracer } from './open-telemetry.ts';

/** A span that the tracer recorded. */
interface Recorded {
  readonly name: string;
  readonly parent: string | undefined;
  readonly start: unknown;
  end?: unknown;
  attributes: Record<string, unknown>;
  status?: unknown;
}

/** Returns a tracer on a fake OpenTelemetry API, the spans that the API has recorded, and the clock of the tracer. */
function start() {
  const clock = { at: 0, now: () => 1_000_000 + clock.at, monotonic: () => clock.at };
  const spans: Recorded[] = [];
  const names = new Map<string, string>();
  const api: OpenTelemetryTracer = {
    startSpan: (name, options = {}, context?: Context) => {
      const spanId = String(spans.length).padStart(16, '0');
      names.set(spanId, name);
      const parent = context && trace.getSpanContext(context)?.spanId;
      const recorded: Recorded = {
        name,
        start: options.startTime,
        attributes: { ...options.attributes },
        parent: names.get(parent ?? ''),
      };
      spans.push(recorded);
      const span = trace.wrapSpanContext({ traceId: 'a'.repeat(32), spanId, traceFlags: 1 });
      return Object.assign(span, {
        setAttributes: (more: object): Span => {
          Object.assign(recorded.attributes, more);
          return span;
        },
        setStatus: (status: object): Span => {
          recorded.status = status;
          return span;
        },
        end: (time: unknown) => {
          recorded.end = time;
        },
      });
    },
    startActiveSpan: () => {
      throw new Error('not used');
    },
  };
  return { clock, spans, tracer: openTelemetryTracer(api, clock) };
}

test('a call in a span is recorded as a child of that span, with times from the clock of the tracer', async () => {
  const { clock, spans, tracer } = start();
  await tracer.span('reconcile vm', { a: 1 }, async (span) => {
    expect(span.traceId).toBe('a'.repeat(32));
    clock.at = 30;
    await Promise.resolve();
    tracer.call({ name: 'cloud GET', durationMs: 20, attributes: { b: 2 } });
    clock.at = 40;
    span.set({ c: 3 });
  });
  expect(spans).toEqual([
    { name: 'reconcile vm', parent: undefined, start: 1_000_000, end: 1_000_040, attributes: { a: 1, c: 3 } },
    { name: 'cloud GET', parent: 'reconcile vm', start: 1_000_010, end: 1_000_030, attributes: { b: 2 } },
  ]);
});

test('each of two concurrent spans gets only its own calls and nested spans as children', async () => {
  const { spans, tracer } = start();
  const first = Promise.withResolvers<void>();
  const outer = tracer.span('one', {}, async () => {
    await first.promise;
    tracer.call({ name: 'call of one', durationMs: 0, attributes: {} });
    await tracer.span('inner', {}, async () => undefined);
  });
  await tracer.span('two', {}, async () => {
    first.resolve();
    await Promise.resolve();
    tracer.call({ name: 'call of two', durationMs: 0, attributes: {} });
  });
  await outer;
  const parents = Object.fromEntries(spans.map(({ name, parent }) => [name, parent]));
  expect(parents).toEqual({
    one: undefined,
    two: undefined,
    inner: 'one',
    'call of one': 'one',
    'call of two': 'two',
  });
});

test('calls outside of a span, or after its end, are not recorded', async () => {
  const { spans, tracer } = start();
  const call = { name: 'late', durationMs: 0, attributes: {} };
  tracer.call(call);
  const ended = Promise.withResolvers<void>();
  let late: Promise<void> | undefined;
  await tracer.span('reconcile vm', {}, async () => {
    late = ended.promise.then(() => tracer.call(call));
  });
  ended.resolve();
  await late;
  expect(spans.map(({ name }) => name)).toEqual(['reconcile vm']);
});

test('an error that is thrown in a span is recorded on the span and rethrown', async () => {
  const { spans, tracer } = start();
  const failing = tracer.span('reconcile vm', {}, async () => {
    tracer.call({ name: 'cloud GET', durationMs: 0, isError: true, attributes: {} });
    throw new Error('no space left');
  });
  await expect(failing).rejects.toThrow('no space left');
  expect(spans.map(({ status }) => status)).toEqual([
    { code: SpanStatusCode.ERROR, message: 'no space left' },
    { code: SpanStatusCode.ERROR },
  ]);
});

test('a wall clock that jumps does not distort a span', async () => {
  const { clock, spans, tracer } = start();
  await tracer.span('reconcile vm', {}, async () => {
    clock.at = 10;
    clock.now = () => 0;
  });
  expect(spans[0]).toMatchObject({ start: 1_000_000, end: 1_000_010 });
});
