/** Attributes of a span. Names follow OpenTelemetry's semantic conventions, if these define a name. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

/** The span in which work runs. */
export interface ActiveSpan {
  /** Id of the trace: 32 lower-case hex digits. */
  readonly traceId: string;
  /** Adds attributes that are known only at the end of the work. */
  set(attributes: SpanAttributes): void;
}

/** A completed call to another system. */
export interface TracedCall {
  /** Name of the span, such as `vCenter CloneVM_Task`. The number of different names must be small. */
  readonly name: string;
  readonly durationMs: number;
  /** Whether the call failed or got an error response. @default false */
  readonly isError?: boolean;
  readonly attributes: SpanAttributes;
}

/**
 * Records the work of a program as spans. A program without a tracer records nothing, at the cost of one check per
 * span.
 */
export interface Tracer {
  /**
   * Runs `work` in a new span, as a child of the current span if there is one. Records an error of the work and
   * rethrows it.
   */
  span<T>(name: string, attributes: SpanAttributes, work: (span: ActiveSpan) => Promise<T>): Promise<T>;
  /**
   * Records a call as a child of the current span. Does nothing if there is no current span, or if the current span has
   * ended. For example, a watch outlives the reconcile that started it. Later calls of the watch are not part of the
   * reconcile's trace.
   */
  call(call: TracedCall): void;
}
