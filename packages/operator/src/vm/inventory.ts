import type { CloudClient, Server } from '@vmwright/cloud';
import { type Availability, unlessAborted, type World } from '@vmwright/runtime';
import { marksOfAll } from './marks.ts';
import type { Gone } from './plan.ts';
import { unlessGone } from './unless-gone.ts';

export interface InventoryOptions {
  readonly world: Pick<World, 'monotonic'>;
  readonly cloud: CloudClient;
  readonly cluster: string;
  /** Maximum age of a list; an older one is refreshed before use. */
  readonly maxAgeMs: number;
  /** Time for each page of a list. */
  readonly timeoutMs: number;
  /** Learns of each list that is complete, and of each that failed. */
  readonly availability: Pick<Availability, 'answered' | 'failed'>;
}

/** Pause after a failed list before any caller starts the next. */
const REST_MS = 1_000;

interface Sighting {
  readonly server: Server;
  /** When it was asked for. */
  readonly at: number;
}

/**
 * The servers of ours, as last seen: one call for a thousand objects instead of one for each.
 *
 * Guarantees: lists are asked for one at a time, however many need one. What a list lacks is not taken for gone before
 * the cloud was asked for that very server: a list may be older than it. Nor does a list take the place of what was
 * seen of a server after the list was asked for.
 */
export class Inventory {
  readonly #options: InventoryOptions;
  #sightings = new Map<string, Sighting>();
  #listedAt = Number.NEGATIVE_INFINITY;
  #listing: Promise<void> | undefined;
  #failure: { readonly error: unknown; readonly at: number } | undefined;

  constructor(options: InventoryOptions) {
    this.#options = options;
  }

  get servers(): ReadonlyMap<string, Server> {
    return new Map([...this.#sightings].map(([id, { server }]) => [id, server]));
  }

  /** Lists anew, or joins who does. */
  refresh(): Promise<void> {
    this.#listing ??= this.#list().finally(() => {
      this.#listing = undefined;
    });
    return this.#listing;
  }

  /** Takes in what the cloud has answered about a server. */
  saw(server: Server): void {
    this.#sightings.set(server.id, { server, at: this.#now });
  }

  async find(id: string, signal: AbortSignal): Promise<Server | Gone> {
    const { cloud, maxAgeMs } = this.#options;
    if (this.#now - this.#listedAt > maxAgeMs) await unlessAborted(this.#current(), signal);
    const known = this.#sightings.get(id)?.server;
    if (known !== undefined) return known;
    const server = await unlessGone(cloud.get(id, { signal }));
    if (server !== undefined) this.saw(server);
    return server ?? { gone: id };
  }

  #current(): Promise<void> {
    if (this.#failure !== undefined && this.#now - this.#failure.at < REST_MS)
      return Promise.reject(this.#failure.error);
    return this.refresh();
  }

  /** Without a signal: who has asked for it first may be the first to give up. */
  async #list(): Promise<void> {
    const { cloud, cluster, timeoutMs, availability } = this.#options;
    const sightings = new Map<string, Sighting>();
    const at = this.#now;
    try {
      // Not retried here: the poller retries, and a cloud that hangs is noticed after one time-out instead of four.
      for await (const page of cloud.list({ labels: marksOfAll(cluster), timeoutMs, tries: 1 }))
        for (const server of page) sightings.set(server.id, { server, at });
    } catch (error) {
      this.#failure = { error, at: this.#now };
      availability.failed(error);
      throw error;
    }
    for (const [id, sighting] of this.#sightings) if (sighting.at > at) sightings.set(id, sighting);
    this.#sightings = sightings;
    this.#listedAt = at;
    this.#failure = undefined;
    availability.answered();
  }

  get #now(): number {
    return this.#options.world.monotonic();
  }
}
