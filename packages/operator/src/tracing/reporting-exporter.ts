import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace';
import { type Logger, messageOf } from '@vmwright/runtime';

/** Result of an export; code 0 is success. */
type Result = Parameters<Parameters<SpanExporter['export']>[1]>[0];

/**
 * Logs when the collector stops accepting spans, and when it accepts them again. The SDK itself does not log when it
 * drops spans.
 */
export class ReportingExporter implements SpanExporter {
  readonly #exporter: SpanExporter;
  readonly #log: Logger;
  #isFailing = false;

  constructor(exporter: SpanExporter, log: Logger) {
    this.#exporter = exporter;
    this.#log = log;
  }

  export(spans: ReadableSpan[], onResult: (result: Result) => void): void {
    this.#exporter.export(spans, (result) => {
      this.#report(result);
      onResult(result);
    });
  }

  async shutdown(): Promise<void> {
    await this.#exporter.shutdown();
  }

  async forceFlush(): Promise<void> {
    await this.#exporter.forceFlush?.();
  }

  #report({ code, error }: Result): void {
    const isFailing = code !== 0;
    if (isFailing === this.#isFailing) return;
    this.#isFailing = isFailing;
    if (isFailing)
      this.#log.warn(
        { error: messageOf(error) },
        'Sending spans failed, dropping them (logged once); see OTEL_EXPORTER_OTLP_ENDPOINT',
      );
    else this.#log.info({}, 'Collector accepts spans again');
  }
}
