import { type Clock, type Logger, messageOf, type Timer } from '@vmwright/core';

/**
 * Thrown by a reconcile when a backend outside the cluster does not respond. The controller retries the reconcile, as
 * after any other error, but logs the error only at debug level: `Availability` logs the outage once for all objects.
 */
export class BackendUnavailableError extends Error {
  readonly code = 'BACKEND_UNAVAILABLE';
  /** Name of the backend, such as `cloud`. */
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
  /** Name of the backend in log lines and errors, such as `cloud`. */
  readonly backend: string;
  /** Milliseconds after the last response at which a failing backend becomes unavailable. */
  readonly afterMs: number;
  /**
   * Time limit for the first response after `restart`, in milliseconds. The lower of this and `afterMs` applies.
   * @default 10_000
   */
  readonly startMs?: number;
  /**
   * Called when the backend becomes unavailable and when it responds again, after `outage` has changed. Use it to
   * enqueue every object that depends on the backend.
   */
  readonly onChange?: (outage: Outage | undefined) => void;
}

/** A period in which the backend does not respond. */
export interface Outage {
  /** Error of the last failed request. */
  readonly error: unknown;
}

/**
 * Decides whether a backend is available, and logs one line per transition. The class itself sends no requests.
 *
 * Flow: the code that probes the backend reports each result (`answered`, `failed`). The backend becomes unavailable
 * when a probe has failed and the last response is `afterMs` old. The next response makes it available again.
 *
 * Guarantees: `onChange` is called once per transition. `outageSignal` aborts when an outage begins. So requests that
 * still wait for a response do not delay the reconciles that report the outage.
 *
 * Assumptions: a probe ends in bounded time, and `restart` is called when probing begins or resumes.
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

  /** The current outage; undefined while the backend is available. */
  get outage(): Outage | undefined {
    return this.#outage;
  }

  /** Aborts with a BackendUnavailableError when the next outage begins; already aborted during an outage. */
  get outageSignal(): AbortSignal {
    return this.#begin.signal;
  }

  /** Throws while the backend is unavailable. @throws BackendUnavailableError */
  assertAvailable(): void {
    if (this.#outage !== undefined) throw this.#begin.signal.reason;
  }

  /**
   * Resets the state. Call it when probing begins: at the start of the program and of each leadership term. A known
   * outage is dropped without a call of `onChange`, because the outage may have ended while another replica led. An
   * outage that still lasts is detected again after `startMs`.
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

  /** Reports that the backend responded. */
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

  /** Reports that a request got no response, or a response that only says that the backend cannot serve requests. */
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
    log.warn(
      { backend, error: message },
      'Backend unavailable; objects that depend on it are retried when it answers',
    );
    this.#begin.abort(
      new BackendUnavailableError(backend, `${backend} is unavailable: ${message}`, { cause: error }),
    );
    onChange?.(this.#outage);
  }
}
