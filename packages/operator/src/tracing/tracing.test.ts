import { collectingLogger, nodeWorld } from '@vmwright/runtime';
import { expect, test } from 'vitest';
import { startCollector } from '../../test/collector.ts';
import { ReportingExporter } from './reporting-exporter.ts';
import { startTracing } from './tracing.ts';

test('tracing is off without settings', async () => {
  const { logger: log, lines } = collectingLogger();
  const program = { world: nodeWorld, log, name: 'vmwright', version: '1' };
  expect(await startTracing(undefined, program)).toBeUndefined();
  expect(lines).toEqual([]);
});

test('spans have ids and times from the World, and are sent before the program ends', async () => {
  await using collector = await startCollector();
  process.env.OTEL_EXPORTER_OTLP_ENDPOINT = collector.url; // the SDK itself reads this variable
  const { logger: log, lines } = collectingLogger();
  const uuids = Array.from({ length: 9 }, (_, at) => `${at}0000000-0000-4000-8000-000000000000`);
  const uuid = () => uuids.pop() ?? '';
  // Timers never fire. Otherwise, if this process were paused, the last export could exceed its time limit.
  const after = () => ({ cancel: () => undefined });
  const world = { ...nodeWorld, uuid, now: () => 1_800_000_000_000, monotonic: () => 0, after };
  const settings = { endpoint: collector.url, ratio: 1 };
  const tracing = await startTracing(settings, { world, log, name: 'vmwright', version: '1' });
  await tracing?.tracer.span('reconcile vm', {}, async () => {
    tracing.tracer.call({ name: 'cloud GET', durationMs: 7, attributes: { a: 1 } });
  });
  await tracing?.[Symbol.asyncDispose]();
  delete process.env.OTEL_EXPORTER_OTLP_ENDPOINT;
  const [call, reconcile] = collector.spans;
  expect(call?.id).not.toBe(reconcile?.id);
  expect(call).toMatchObject({
    name: 'cloud GET',
    parent: reconcile?.id,
    durationMs: 7,
    attributes: { a: 1 },
  });
  expect(reconcile).toMatchObject({ name: 'reconcile vm', parent: '' });
  expect(reconcile?.traceId).toMatch(/^\d0{11}400080{15}$/);
  expect([...collector.services]).toEqual(['vmwright']);
  expect(lines.map(({ msg }) => msg)).toEqual(['Sending traces to a collector']);
});

test('a failing collector is logged once, and once more when it accepts spans again', () => {
  const { logger, lines } = collectingLogger();
  const results = [
    { code: 1, error: new Error('connect ECONNREFUSED') },
    { code: 1 },
    { code: 0 },
    { code: 0 },
  ];
  const exporter = new ReportingExporter(
    {
      export: (_, onResult) => onResult(results.shift() ?? { code: 0 }),
      shutdown: async () => undefined,
    },
    logger,
  );
  const codes: number[] = [];
  for (let batch = 0; batch < 4; batch++) exporter.export([], ({ code }) => codes.push(code));
  expect(codes).toEqual([1, 1, 0, 0]);
  expect(lines.map(({ level, msg, error }) => [level, msg, error])).toEqual([
    ['warn', expect.stringContaining('Sending spans failed'), 'connect ECONNREFUSED'],
    ['info', 'Collector accepts spans again', undefined],
  ]);
});
