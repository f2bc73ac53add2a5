import { type CloudClient, ConnectionError, type Server } from '@vmwright/cloud';
import { unlessAborted, type World } from '@vmwright/runtime';
import { marksOfAll } from './marks.ts';
import type { Gone } from './plan.ts';
import { unlessGone } from './unless-gone.ts';

export interface InventoryOptions {
  readonly world: Pick<World, 'monotonic'>;
  readonly cloud: CloudClient;
  readonly cluster: string;
  /** A list that is older than this is asked for anew before it is used. */
  readonly maxAgeMs: number;
}

/** After a failure the cloud is left alone for so long, whoever asks. */
const REST_MS = 1_000;

/**
 * The servers of ours, as last listed: one call for a thousand objects instead of one for each.
 *
 * Guarantees: lists are asked for one at a time, however many need one. What a list lacks is not taken for gone before
 * the cloud was asked for that very server: a list may be older than it.
 */
export class Inventory {
  readonly #options: InventoryOptions;
  #servers: ReadonlyMap<string, Server> = new Map();
  #listedAt = Number.NEGATIVE_INFINITY;
  #listing: Promise<ReadonlyMap<string, Server>> | undefined;
  #failure: { readonly error: unknown; readonly at: number } | undefined;
  #failures = 0;

  constructor(options: InventoryOptions) {
    this.#options = options;
  }

  /** How often in a row a list could not be had. */
  get failures(): number {
    return this.#failures;
  }

  /** Lists anew, or joins who does. */
  refresh(): Promise<ReadonlyMap<string, Server>> {
    this.#listing ??= this.#list().finally(() => {
      this.#listing = undefined;
    });
    return this.#listing;
  }

  async find(id: string, signal: AbortSignal): Promise<Server | Gone> {
    const { cloud, maxAgeMs } = this.#options;
    const age = this.#now - this.#listedAt;
    const listed = age > maxAgeMs ? await unlessAborted(this.#current(), signal) : this.#servers;
    const server = listed.get(id);
    if (server !== undefined) return server;
    return (await unlessGone(cloud.get(id, { signal }))) ?? { gone: id };
  }

  #current(): Promise<ReadonlyMap<string, Server>> {
    if (this.#failure !== undefined && this.#now - this.#failure.at < REST_MS)
      return Promise.reject(this.#failure.error);
    return this.refresh();
  }

  /** Without a signal: who has asked for it first may be the first to give up. */
  async #list(): Promise<ReadonlyMap<string, Server>> {
    const { cloud, cluster } = this.#options;
    const servers = new Map<string, Server>();
    const startedAt = this.#now;
    try {
      for await (const page of cloud.list({ labels: marksOfAll(cluster) }))
        for (const server of page) servers.set(server.id, server);
    } catch (error) {
      this.#failure = { error, at: this.#now };
      this.#failures += 1;
      throw error;
    }
    this.#servers = servers;
    this.#listedAt = startedAt;
    this.#failure = undefined;
    this.#failures = 0;
    return servers;
  }

  get #now(): number {
    return this.#options.world.monotonic();
  }
}

/** Whether the cloud has not answered, as opposed to having said no. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof ConnectionError;
}
