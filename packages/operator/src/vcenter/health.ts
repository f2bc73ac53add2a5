import { Availability, type Logger, type World } from '@vmwright/runtime';
import type { VcenterClient } from '@vmwright/vsphere';
import { outageOf, type VcenterOutageError } from './errors.ts';

/**
 * If a vCenter does not respond, or its inventory is not current, for this time, it counts as unavailable and Ready
 * becomes Unknown. During a shorter gap, the operator performs no actions, but Ready keeps its value.
 */
export const STALE_MS = 10_000;
/** Timeout of a probe. It is shorter than the timeout of other calls, because the next probe follows soon. */
const PROBE_TIMEOUT_MS = 5_000;

export interface VcenterHealthOptions {
  readonly world: World;
  readonly log: Logger;
  /** Name of the vCenter in messages. */
  readonly name: string;
  readonly client: VcenterClient;
}

/**
 * Tracks whether a vCenter can be used and, if not, why. Evaluates the result of every call. A wrong password, a 503
 * and a missing response lead to different messages. After a failed call, `probe` calls vCenter to detect the end of
 * the outage.
 */
export class VcenterHealth {
  readonly #options: VcenterHealthOptions;
  readonly #availability: Availability;
  #failure: { readonly error: unknown } | undefined;
  #isProbing = false;

  constructor(options: VcenterHealthOptions) {
    const { world, log, name, client } = options;
    this.#options = options;
    this.#availability = new Availability({
      clock: world,
      log,
      backend: `vcenter ${name}`,
      afterMs: STALE_MS,
    });
    client.health.listen({
      answered: () => {
        this.#failure = undefined;
        this.#availability.answered();
      },
      failed: (error) => {
        this.#failure = { error };
        this.#availability.failed(error);
      },
    });
  }

  /** Whether vCenter has been unavailable for at least `STALE_MS`. */
  get isDown(): boolean {
    return this.#availability.outage !== undefined;
  }

  /** Whether the last call failed because vCenter cannot be used. */
  get isFailing(): boolean {
    return this.#failure !== undefined;
  }

  /** Returns the outage to report, with the cause of the last failed call. */
  outage(): VcenterOutageError {
    return outageOf(this.#options.name, this.#failure?.error ?? this.#availability.outage?.error);
  }

  /**
   * Calls vCenter if the last call failed. Without this call, the end of an outage would be detected only when the
   * back-off of an object ends.
   */
  probe(): void {
    if (this.#failure === undefined || this.#isProbing) return;
    this.#isProbing = true;
    const ended = () => {
      this.#isProbing = false;
    };
    this.#options.client.ping({ timeoutMs: PROBE_TIMEOUT_MS }).then(ended, ended);
  }
}
