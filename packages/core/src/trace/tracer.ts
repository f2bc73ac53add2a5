/** Attributes of a span. Names follow OpenTelemetry's semantic conventions where these define one. */
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
  /** Name of the span, from a small set: `vCenter CloneVM_Task`. */
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
   * Records a call as a child of the current span. Does nothing without a current span, or if that span has ended: a
   * watch that a reconcile starts outlives the reconcile and is not part of its trace.
   */
  call(call: TracedCall): void;
}
