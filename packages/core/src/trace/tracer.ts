/** Attributes of a span, named as in OpenTelemetry's semantic conventions where these have a name. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

/** The span in which work runs. */
export interface ActiveSpan {
  /** Id of the trace: 32 lower-case hex digits. */
  readonly traceId: string;
  /** Adds attributes that are known only at the end of the work. */
  set(attributes: SpanAttributes): void;
}

/** A call to another system that has ended. */
export interface TracedCall {
  /** Name of the span, from a small set: `vCenter CloneVM_Task`. */
  readonly name: string;
  readonly durationMs: number;
  /** Whether the call got no successful response. @default false */
  readonly isError?: boolean;
  readonly attributes: SpanAttributes;
}

/**
 * Records what a program does as spans. Tracing is off if a program has no tracer: the code that would record checks that and
 * does nothing else.
 */
export interface Tracer {
  /** Runs work in a span, which is a child of the span in which it is called, if any. An error of the work is recorded. */
  span<T>(name: string, attributes: SpanAttributes, work: (span: ActiveSpan) => Promise<T>): Promise<T>;
  /**
   * Records a call as a child of the span in which it was made. Ignored if there is none, or if that span has ended: work that
   * a reconcile started and that continues for ever, such as a watch, is not part of it.
   */
  call(call: TracedCall): void;
}
