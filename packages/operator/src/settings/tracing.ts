import { type Environment, invalidSetting, parseUrl } from './values.ts';

/**
 * Settings of tracing. The OpenTelemetry SDK reads its other variables itself: headers, certificates, compression,
 * resource.
 */
export interface TracingSettings {
  /** URL of the collector. The SDK reads it from the environment too. */
  readonly endpoint: string;
  /** Share of the traces that are recorded, from 0 to 1. */
  readonly ratio: number;
}

const SAMPLER = 'OTEL_TRACES_SAMPLER';
const ARGUMENT = 'OTEL_TRACES_SAMPLER_ARG';

/** Returns the settings of tracing; undefined if it is off. @throws SettingsError */
export function parseTracingSettings(environment: Environment): TracingSettings | undefined {
  const name = 'OTEL_EXPORTER_OTLP_ENDPOINT';
  const endpoint = parseUrl(name, environment[name]);
  return endpoint === undefined ? undefined : { endpoint, ratio: ratioOf(environment) };
}

function ratioOf(environment: Environment): number {
  const sampler = environment[SAMPLER] || 'parentbased_always_on';
  switch (sampler.replace(/^parentbased_/, '')) {
    case 'always_on':
      return 1;
    case 'always_off':
      return 0;
    case 'traceidratio':
      return parseRatio(environment[ARGUMENT] || '1');
    default:
      throw invalidSetting(
        SAMPLER,
        sampler,
        'always_on, always_off or traceidratio, optionally with the prefix parentbased_',
      );
  }
}

function parseRatio(text: string): number {
  const ratio = Number(text);
  if (ratio >= 0 && ratio <= 1) return ratio;
  throw invalidSetting(ARGUMENT, text, 'a number from 0 to 1');
}
