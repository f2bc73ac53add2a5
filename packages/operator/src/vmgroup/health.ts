import { Availability, type Logger, type World } from '@vmwright/runtime';
import type { VcenterClient } from '@vmwright/vsphere';
import { outageOf, type VcenterOutageError } from './trouble.ts';

/** A vCenter that has not answered for this long is unavailable; until then nothing is reported, and nothing is changed. */
export const BLIND_MS = 10_000;
/** For one probe: shorter than other calls, since the next one follows soon. */
const PROBE_TIMEOUT_MS = 5_000;

export interface VcenterHealthOptions {
  readonly world: World;
  readonly log: Logger;
  /** Name of the vCenter in messages. */
  readonly name: string;
  readonly vcenter: VcenterClient;
}

/**
 * Knows whether a vCenter can be used, and if not, why: a wrong password, a 503 and a silent server keep their own reasons.
 * It learns from every call that is made; `probe` asks while there is a failure and no other call may be made.
 */
export class VcenterHealth {
  readonly #options: VcenterHealthOptions;
  readonly #availability: Availability;
  #failure: { readonly error: unknown } | undefined;
  #isProbing = false;

  constructor(options: VcenterHealthOptions) {
    const { world, log, name, vcenter } = options;
    this.#options = options;
    this.#availability = new Availability({
      clock: world,
      log,
      backend: `vcenter ${name}`,
      afterMs: BLIND_MS,
    });
    vcenter.health.listen({
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

  /** Whether vCenter has been unavailable for a while. */
  get isDown(): boolean {
    return this.#availability.outage !== undefined;
  }

  /** Whether the last call failed for want of a usable vCenter. */
  get isFailing(): boolean {
    return this.#failure !== undefined;
  }

  /** What a status says of a vCenter that cannot be used, by what the last call has met. */
  outage(): VcenterOutageError {
    return outageOf(this.#options.name, this.#failure?.error ?? this.#availability.outage?.error);
  }

  /** Asks vCenter for a sign of life while the last call has failed. Groups in back-off would not ask for a while. */
  probe(): void {
    if (this.#failure === undefined || this.#isProbing) return;
    this.#isProbing = true;
    const ended = () => {
      this.#isProbing = false;
    };
    this.#options.vcenter.ping({ timeoutMs: PROBE_TIMEOUT_MS }).then(ended, ended);
  }
}
