import type { ComputeChange, ComputeFacts, HostFacts, MachineFacts } from './compute-facts.ts';
import type { ComputeInventory } from './compute-inventory.ts';
import { normalizeUuid, swapUuid } from './machine-uuid.ts';
import type { VCenterPool } from './vcenter-pool.ts';

/** The properties and methods of the class `ComputeInventory` that `PooledComputeFacts` uses. */
type Source = Pick<ComputeInventory, 'name' | 'isStale' | 'host' | 'machinesBy' | 'subscribe' | 'synced'>;

/** Opens the inventories of hosts and machines of all vCenters. Each inventory is closed when its vCenter is closed. */
export function openComputeFacts(
  pool: VCenterPool,
  options: { readonly maintenanceAttribute: string },
): ComputeFacts {
  return new PooledComputeFacts([...pool].map((vcenter) => vcenter.openCompute(options)));
}

/** The hosts and machines of several vCenters. */
export class PooledComputeFacts implements ComputeFacts {
  readonly #sources: readonly Source[];

  constructor(sources: readonly Source[]) {
    this.#sources = sources;
  }

  get staleVcenters(): readonly string[] {
    return this.#sources.filter(({ isStale }) => isStale).map(({ name }) => name);
  }

  host(id: string): HostFacts | undefined {
    for (const source of this.#sources) {
      const host = source.host(id);
      if (host !== undefined) return host;
    }
    return undefined;
  }

  machineByUuid(text: string): MachineFacts | undefined {
    const uuid = normalizeUuid(text);
    if (uuid === undefined) return undefined;
    const lookups = [
      () => this.#machines('uuid', uuid),
      () => this.#machines('instanceUuid', uuid),
      () => this.#machines('uuid', swapUuid(uuid)),
    ];
    for (const lookUp of lookups) {
      const found = lookUp();
      if (found.length > 0) return theRunning(found);
    }
    return undefined;
  }

  machineByName(name: string): MachineFacts | undefined {
    const found = this.#machines('name', name);
    return found.length === 1 ? found[0] : undefined;
  }

  subscribe(listener: (change: ComputeChange) => void): () => void {
    const ends = this.#sources.map((source) => source.subscribe(listener));
    return () => {
      for (const end of ends) end();
    };
  }

  async synced(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#sources.map((source) => source.synced(signal)));
  }

  #machines(index: 'name' | 'uuid' | 'instanceUuid', key: string): readonly MachineFacts[] {
    return this.#sources.flatMap((source) => source.machinesBy(index, key));
  }
}

/**
 * Returns the only machine in the list. If the list has several machines, returns the only one that is powered on;
 * otherwise undefined. Several machines can have the same UUID: a copy keeps the BIOS UUID, and a migration between
 * vCenters may leave the old machine behind.
 */
function theRunning(machines: readonly MachineFacts[]): MachineFacts | undefined {
  if (machines.length === 1) return machines[0];
  const running = machines.filter(({ isPoweredOn }) => isPoweredOn);
  return running.length === 1 ? running[0] : undefined;
}
