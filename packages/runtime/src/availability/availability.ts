import { type Clock, type Logger, messageOf, type Timer } from '@vmwright/core';

/**
 * A reconcile failed because a backend outside the cluster does not answer. The controller retries it as any failure and
 * logs it at debug: `Availability` logs the outage once for all objects.
 */
export class BackendUnavailableError extends Error {
  readonly code = 'BACKEND_UNAVAILABLE';
  /** Name of the backend: `cloud`. */
  readonly backend: string;

  constructor(backend: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'BackendUnavailableError';
    this.backend = backend;
  }
}

export interface AvailabilityOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'after'>;
  readonly log: Logger;
  /** Name of the backend in log lines and errors: `cloud`. */
  readonly backend: string;
  /** Time without an answer after which the backend is unavailable, in milliseconds. */
  readonly afterMs: number;
  /** Time for the first answer after `restart`, where it is shorter than `afterMs`. @default 10_000 */
  readonly startMs?: number;
  /**
   * Called when the backend becomes unavailable and when it answers again, after `outage` has changed. The place to
   * enqueue every object that depends on the backend.
   */
  readonly onChange?: (outage: Outage | undefined) => void;
}

/** A time in which the backend does not answer. */
export interface Outage {
  /** What the last failed request has met. */
  readonly error: unknown;
}

/**
 * Decides whether a backend is available, and logs one line per transition.
 *
 * Flow: whoever probes the backend regularly reports each result (`answered`, `failed`). After a failure with no answer
 * for `afterMs`, the backend is unavailable until the next answer.
 *
 * Guarantees: `onChange` is called once per transition. `outageSignal` aborts when an outage begins, so that requests
 * that wait for an answer do not hold up those who report the outage.
 *
 * Assumptions: a probe ends in bounded time, and `restart` is called when probing begins or resumes. The class does not
 * probe: a backend that is never asked stays as it was.
 */
export class Availability {
  readonly #options: AvailabilityOptions;
  #answeredAt = 0;
  #failure: { readonly error: unknown } | undefined;
  #outage: Outage | undefined;
  #timer: Timer | undefined;
  #begin = new AbortController();

  constructor(options: AvailabilityOptions) {
    this.#options = options;
    this.restart();
  }

  /** The outage under way; undefined while the backend is available. */
  get outage(): Outage | undefined {
    return this.#outage;
  }

  /** Aborts, with a BackendUnavailableError, when the next outage begins; has aborted during one. */
  get outageSignal(): AbortSignal {
    return this.#begin.signal;
  }

  /** Throws while the backend is unavailable. @throws BackendUnavailableError */
  assertAvailable(): void {
    if (this.#outage !== undefined) throw this.#begin.signal.reason;
  }

  /**
   * Begins probing: the program has started, or this replica leads again. Forgets an outage that it knew, without calling
   * `onChange`: the backend may have answered other replicas for hours. One that lasts is found again after `startMs`.
   */
  restart(): void {
    const { clock, afterMs, startMs = 10_000 } = this.#options;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#failure = undefined;
    this.#outage = undefined;
    if (this.#begin.signal.aborted) this.#begin = new AbortController();
    this.#answeredAt = clock.monotonic() - Math.max(0, afterMs - startMs);
  }

  /** The backend has answered. */
  answered(): void {
    const { clock, log, backend, onChange } = this.#options;
    this.#answeredAt = clock.monotonic();
    this.#failure = undefined;
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#outage === undefined) return;
    this.#outage = undefined;
    this.#begin = new AbortController();
    log.info({ backend }, 'Backend available again');
    onChange?.(undefined);
  }

  /** A request had no answer, or one that says nothing but that the backend cannot serve it. */
  failed(error: unknown): void {
    const { clock, afterMs } = this.#options;
    this.#failure = { error };
    if (this.#outage !== undefined) {
      this.#outage = { error };
      return;
    }
    if (this.#timer !== undefined) return;
    const leftMs = this.#answeredAt + afterMs - clock.monotonic();
    if (leftMs <= 0) this.#beginOutage();
    else this.#timer = clock.after(leftMs, () => this.#beginOutage());
  }

  #beginOutage(): void {
    const { log, backend, onChange } = this.#options;
    this.#timer = undefined;
    const { error } = this.#failure ?? { error: undefined };
    this.#outage = { error };
    const message = messageOf(error);
    log.warn({ backend, error: message }, 'Backend unavailable; its objects are retried when it answers');
    this.#begin.abort(
      new BackendUnavailableError(backend, `${backend} is unavailable: ${message}`, { cause: error }),
    );
    onChange?.(this.#outage);
  }
}
