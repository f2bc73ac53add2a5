import type { Ref } from '../properties/properties.ts';
import type { VcenterClient } from '../vcenter-client.ts';
import type { VsphereWorld } from '../world.ts';

/** Minimum time between two requests for a host that vCenter did not list. */
const RETRY_MISSING_MS = 60_000;

/** Cache of ESXi host names by reference. A load lists all hosts of the vCenter in one request. */
export class HostNames {
  readonly #world: Pick<VsphereWorld, 'monotonic'>;
  readonly #client: Pick<VcenterClient, 'list'>;
  /** Hosts that were missing from vCenter's list, with the time when each was last found missing. */
  readonly #missing = new Map<string, number>();
  #names: ReadonlyMap<string, string> = new Map();
  #loading: Promise<void> | undefined;

  constructor(world: Pick<VsphereWorld, 'monotonic'>, client: Pick<VcenterClient, 'list'>) {
    this.#world = world;
    this.#client = client;
  }

  /** Returns the name of a host, or its reference while the name is not loaded. */
  get({ value }: Ref): string {
    return this.#names.get(value) ?? value;
  }

  /**
   * Loads the names of hosts that are not cached. A host that vCenter did not list is requested again after a minute.
   * @throws VsphereError
   */
  async load(hosts: Iterable<Ref>): Promise<void> {
    const requested = [...hosts];
    await this.#loading?.catch(() => undefined); // a load in progress may load these names
    const unknown = requested.filter(({ value }) => this.#needsLoad(value));
    if (unknown.length === 0) return;
    this.#loading ??= this.#list().finally(() => {
      this.#loading = undefined;
    });
    await this.#loading;
    for (const { value } of unknown)
      if (!this.#names.has(value)) this.#missing.set(value, this.#world.monotonic());
  }

  #needsLoad(value: string): boolean {
    const missingSince = this.#missing.get(value) ?? Number.NEGATIVE_INFINITY;
    return !this.#names.has(value) && this.#world.monotonic() - missingSince > RETRY_MISSING_MS;
  }

  async #list(): Promise<void> {
    const hosts = await this.#client.list('HostSystem', ['name']);
    this.#names = new Map(hosts.map(({ ref: { value }, properties: { name = value } }) => [value, name]));
  }
}
