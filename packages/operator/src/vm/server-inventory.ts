import type { CloudClient, Server } from '@vmwright/cloud';
import { type Availability, unlessAborted, type World } from '@vmwright/runtime';
import { ignoreNotFound } from './errors.ts';
import { clusterLabels } from './identity.ts';
import type { Gone } from './observe.ts';

export interface ServerInventoryOptions {
  readonly world: Pick<World, 'monotonic'>;
  readonly cloud: CloudClient;
  /** Id of this cluster in the ownership labels. */
  readonly cluster: string;
  /** Maximum age of a list; an older list is refreshed before use. */
  readonly maxAgeMs: number;
  /** Timeout of each page of a list. */
  readonly timeoutMs: number;
  /** Receives the result of each list request. */
  readonly availability: Pick<Availability, 'answered' | 'failed'>;
}

/** Pause after a failed list request. During the pause, `get` repeats the error of that request and does not list. */
const LIST_BACKOFF_MS = 1_000;

interface Observation {
  readonly server: Server;
  /** Time at which the list was requested, or at which the server was stored with `set`. */
  readonly at: number;
}

/**
 * Cache of this cluster's servers. One list serves all VMs, instead of one request per VM.
 *
 * Guarantees: at most one list is in flight. A list may be older than a new server. So a server that the list lacks is
 * reported as gone only if a request for that server returns "not found". A list does not replace newer observations.
 */
export class ServerInventory {
  readonly #options: ServerInventoryOptions;
  #observations = new Map<string, Observation>();
  #listedAt = Number.NEGATIVE_INFINITY;
  #listing: Promise<void> | undefined;
  #failure: { readonly error: unknown; readonly at: number } | undefined;

  constructor(options: ServerInventoryOptions) {
    this.#options = options;
  }

  get servers(): ReadonlyMap<string, Server> {
    return new Map([...this.#observations].map(([id, { server }]) => [id, server]));
  }

  /** Lists all servers, or joins the list in flight. */
  refresh(): Promise<void> {
    this.#listing ??= this.#list().finally(() => {
      this.#listing = undefined;
    });
    return this.#listing;
  }

  /** Stores a server that the cloud has just returned. */
  set(server: Server): void {
    this.#observations.set(server.id, { server, at: this.#now });
  }

  /** Returns a server from the cache, or from the cloud if the cache lacks it. Refreshes an outdated list first. */
  async get(id: string, signal: AbortSignal): Promise<Server | Gone> {
    const { cloud, maxAgeMs } = this.#options;
    if (this.#now - this.#listedAt > maxAgeMs) await unlessAborted(this.#refreshUnlessFailed(), signal);
    const known = this.#observations.get(id)?.server;
    if (known !== undefined) return known;
    const server = await ignoreNotFound(cloud.get(id, { signal }));
    if (server !== undefined) this.set(server);
    return server ?? { gone: id };
  }

  #refreshUnlessFailed(): Promise<void> {
    if (this.#failure !== undefined && this.#now - this.#failure.at < LIST_BACKOFF_MS)
      return Promise.reject(this.#failure.error);
    return this.refresh();
  }

  /**
   * Lists all servers. Takes no signal: the caller that started the list may give up while other callers wait for the
   * list.
   */
  async #list(): Promise<void> {
    const { cloud, cluster, timeoutMs, availability } = this.#options;
    const observations = new Map<string, Observation>();
    const at = this.#now;
    try {
      // The client does not retry: the poller does, and a cloud that hangs is noticed after one timeout instead of
      // four.
      for await (const page of cloud.list({ labels: clusterLabels(cluster), timeoutMs, tries: 1 }))
        for (const server of page) observations.set(server.id, { server, at });
    } catch (error) {
      this.#failure = { error, at: this.#now };
      availability.failed(error);
      throw error;
    }
    for (const [id, newer] of this.#observations) if (newer.at > at) observations.set(id, newer);
    this.#observations = observations;
    this.#listedAt = at;
    this.#failure = undefined;
    availability.answered();
  }

  get #now(): number {
    return this.#options.world.monotonic();
  }
}
