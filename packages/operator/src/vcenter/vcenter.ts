import { FairLimiter, type Logger, type World } from '@vmwright/runtime';
import { HostNames, type VcenterClient } from '@vmwright/vsphere';
import { ComputeInventory } from './compute-inventory.ts';
import { VcenterHealth } from './health.ts';
import type { Placement } from './placement.ts';
import { WatchedFolders } from './watched-folders.ts';

/** Restricts the templates and machines that groups may clone. */
export interface TemplateRules {
  /** Path of the folder with the templates. Groups cannot use templates elsewhere. @default the whole datacenter */
  readonly folder?: string | undefined;
  /** Whether machines that are not templates may be cloned, too. @default false */
  readonly allowMachines?: boolean | undefined;
}

export interface VCenterOptions {
  readonly world: World;
  readonly log: Logger;
  /** Name of the vCenter in specs, statuses and messages. */
  readonly name: string;
  readonly client: VcenterClient;
  /** Default placement, for fields that a spec does not set. */
  readonly placement: Placement;
  /** Namespaces that may use this vCenter. @default all */
  readonly namespaces?: readonly string[] | undefined;
  /** @default any template */
  readonly templates?: TemplateRules | undefined;
  /** Maximum number of concurrent clones. All other tasks together have a separate limit of the same size. */
  readonly concurrency: number;
  /**
   * Called with the key (`namespace/name`) of an object. Called when machines of the object change, or when the object
   * waits for a permit for a task and a permit is available.
   */
  readonly enqueue: (key: string) => void;
}

/** A connection to a vCenter and what all objects on it share: health, watched folders, task limits, host names. */
export class VCenter implements AsyncDisposable {
  readonly name: string;
  readonly client: VcenterClient;
  readonly namespaces: readonly string[] | undefined;
  readonly templates: TemplateRules;
  readonly health: VcenterHealth;
  readonly folders: WatchedFolders;
  readonly hosts: HostNames;
  readonly #placement: Placement;
  /** Clones take minutes and other tasks take seconds. Separate limits keep clones from delaying other tasks. */
  readonly #limiters: { readonly clone: FairLimiter; readonly other: FairLimiter };
  readonly #locks = new Map<string, Promise<unknown>>();
  readonly #world: World;
  #compute: ComputeInventory | undefined;

  constructor(options: VCenterOptions) {
    const { world, log, name, client, placement, namespaces, templates = {}, concurrency, enqueue } = options;
    const limiter = () => new FairLimiter({ world, limit: concurrency, onAvailable: enqueue });
    this.name = name;
    this.client = client;
    this.namespaces = namespaces;
    this.templates = templates;
    this.#limiters = { clone: limiter(), other: limiter() };
    this.health = new VcenterHealth({ world, log, name, client });
    this.folders = new WatchedFolders({ world, client, health: this.health, enqueue });
    this.hosts = new HostNames(world, client);
    this.#placement = placement;
    this.#world = world;
  }

  /**
   * Starts to watch hosts and machines, unless they are watched already. The inventory is closed when the vCenter is
   * closed.
   */
  openCompute(options: { readonly maintenanceAttribute: string }): ComputeInventory {
    const { client, name } = this;
    this.#compute ??= new ComputeInventory({ world: this.#world, client, name, ...options });
    return this.#compute;
  }

  /** Returns whether objects of a namespace may use this vCenter. */
  admits(namespace: string): boolean {
    return this.namespaces === undefined || this.namespaces.includes(namespace);
  }

  /** Returns the limit that a task counts towards. */
  limiterFor(task: 'clone' | 'other'): FairLimiter {
    return this.#limiters[task];
  }

  /** Removes the object with this key (`namespace/name`) from the queues in which objects wait to start tasks. */
  cancelPermits(key: string): void {
    for (const limiter of Object.values(this.#limiters)) limiter.cancel(key);
  }

  /** Returns a placement with the defaults of this vCenter. */
  withDefaults(placement: Placement = {}): Placement {
    const { resourcePool, ...defaults } = this.#placement;
    // The default pool is not used with another cluster, because it belongs to the default cluster.
    const isOtherCluster = placement.cluster !== undefined && placement.cluster !== defaults.cluster;
    const pool = resourcePool === undefined || isOtherCluster ? {} : { resourcePool };
    return { ...defaults, ...pool, ...placement };
  }

  /** Runs work under a lock: work with the same name never runs concurrently. */
  async withLock<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.#locks.get(name) ?? Promise.resolve();
    const mine = before.catch(() => undefined).then(work);
    this.#locks.set(name, mine);
    try {
      return await mine;
    } finally {
      if (this.#locks.get(name) === mine) this.#locks.delete(name);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#compute?.[Symbol.dispose]();
    await this.client.stop();
  }
}
