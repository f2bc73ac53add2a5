import { expect, test } from 'vitest';
import { parseTracingSettings } from './tracing.ts';
import { SettingsError } from './values.ts';

const OTEL_EXPORTER_OTLP_ENDPOINT = 'http://collector:4318';

test('tracing is off without the endpoint of a collector', () => {
  expect(parseTracingSettings({ OTEL_TRACES_SAMPLER: 'always_on' })).toBeUndefined();
  expect(parseTracingSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: '' })).toBeUndefined();
});

test.each([
  [{}, 1],
  [{ OTEL_TRACES_SAMPLER: 'always_off' }, 0],
  [{ OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.25' }, 0.25],
  [{ OTEL_TRACES_SAMPLER: 'traceidratio' }, 1],
])('the variables %o set the share of sampled traces to %s', (variables, ratio) => {
  expect(parseTracingSettings({ OTEL_EXPORTER_OTLP_ENDPOINT, ...variables })).toEqual({
    endpoint: OTEL_EXPORTER_OTLP_ENDPOINT,
    ratio,
  });
});

test.each([
  [{ OTEL_TRACES_SAMPLER: 'jaeger_remote' }, /OTEL_TRACES_SAMPLER is "jaeger_remote"/],
  [{ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '2' }, /from 0 to 1/],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }, /OTEL_EXPORTER_OTLP_ENDPOINT/],
])('the variables %o are rejected', (variables, message) => {
  const parse = () => parseTracingSettings({ OTEL_EXPORTER_OTLP_ENDPOINT, ...variables });
  expect(parse).toThrow(SettingsError);
  expect(parse).toThrow(message);
});
