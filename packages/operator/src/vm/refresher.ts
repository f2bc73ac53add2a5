import {
  type Availability,
  keyOf,
  type Logger,
  type ObjectCache,
  Poller,
  type Source,
  unlessAborted,
  type World,
} from '@vmwright/runtime';
import { toCondition } from './errors.ts';
import { isOutdated } from './plan.ts';
import { CHANGING_MS } from './polling.ts';
import type { VM } from './resource.ts';
import type { ServerInventory } from './server-inventory.ts';
import { isReported } from './status.ts';

/** Interval at which the servers are listed during an outage. It is short, so that the end is noticed soon. */
const OUTAGE_MS = 3_000;

export interface RefresherOptions {
  readonly world: World;
  readonly log: Logger;
  readonly inventory: Pick<ServerInventory, 'refresh' | 'servers'>;
  readonly availability: Pick<Availability, 'outage' | 'restart'>;
  readonly vms: Pick<ObjectCache<VM>, 'list'>;
  /** Longest pause between two lists of the servers. */
  readonly everyMs: number;
}

/** Refreshes the server inventory periodically and enqueues the VMs whose status differs from it. */
export class Refresher {
  readonly #options: RefresherOptions;
  readonly #poller: Poller;
  #isFailing = false;
  /** Whether a machine was being created at the last poll. */
  #isChanging = false;

  constructor(options: RefresherOptions) {
    const { world, log, everyMs } = options;
    this.#options = options;
    this.#poller = new Poller({
      world,
      everyMs: () =>
        Math.min(this.#isFailing ? OUTAGE_MS : this.#isChanging ? CHANGING_MS : everyMs, everyMs),
      poll: (signal) => this.#poll(signal),
      onError: (error) => log.error({ error: String(error) }, 'Refreshing VMs failed'),
    });
  }

  readonly source: Source = (enqueue, signal) => {
    // Forgets a known outage. It may have ended while another replica was the leader. This replica has not noticed the
    // end, because only the leader polls.
    this.#options.availability.restart();
    return this.#poller.source(enqueue, signal);
  };

  /** Polls soon. Called when the cloud has begun to create or delete a machine. */
  expectChange(): void {
    this.#poller.within(CHANGING_MS);
  }

  async #poll(signal: AbortSignal): Promise<readonly string[]> {
    const { log, inventory, availability } = this.#options;
    try {
      await unlessAborted(inventory.refresh(), signal);
      this.#isFailing = false;
    } catch (error) {
      this.#isFailing = true;
      if (!signal.aborted) log.debug({ error: String(error) }, 'Listing servers failed');
      const outage = availability.outage && toCondition(availability.outage.error);
      // The cause of an outage may change, for example from a timeout to a rejected key. VMs that report another cause
      // are enqueued.
      return outage === undefined ? [] : this.#keys(({ status }) => !isReported(status, outage));
    }
    const { servers } = inventory;
    return this.#keys((vm) => isOutdated(vm, servers));
  }

  /**
   * Returns the keys of the VMs that match the predicate. Also updates `#isChanging`, to avoid a second list: each list
   * of the cache copies every object.
   */
  #keys(predicate: (vm: VM) => boolean): readonly string[] {
    const vms = [...this.#options.vms.list()];
    this.#isChanging = vms.some(isBeingCreated);
    return vms.filter(predicate).map(({ metadata }) => keyOf(metadata));
  }
}

function isBeingCreated({ metadata, status }: VM): boolean {
  return status?.opStatus === 'New' && metadata.deletionTimestamp === undefined;
}
