import type { World } from '@vmwright/runtime';
import { type CloneOptions, type Datacenter, isRef, type Ref, type VcenterClient } from '@vmwright/vsphere';
import { ReportedError } from '../vcenter/errors.ts';
import type { Placement } from '../vcenter/placement.ts';
import type { TemplateRules } from '../vcenter/vcenter.ts';
import type { VmGroup } from './resource.ts';

/** vCenter objects that a clone needs: the template, and the destination without the folder. */
export type CloneTarget = Pick<
  CloneOptions,
  'template' | 'resourcePool' | 'datastore' | 'storagePolicy' | 'linked'
>;

/** A clone target with the folder of the group. */
export type CloneDestination = CloneTarget & { readonly folder: Ref<'Folder'> };

/** The names in the spec that identify a clone target. */
export interface CloneRequest {
  readonly placement: Placement;
  readonly template: string;
  readonly linked: boolean;
}

export function cloneRequestOf({ spec }: VmGroup, placement: Placement): CloneRequest {
  const { template, linked = false } = spec;
  return { placement, template, linked };
}

interface Entry {
  readonly until: number;
  readonly target: Promise<CloneTarget>;
}

/** Time for which a target that was found by name is not looked up again. */
const CACHED_MS = 60_000;

/** Cache of the clone targets on one vCenter. */
export class CloneTargetCache {
  readonly #world: Pick<World, 'monotonic'>;
  readonly #client: VcenterClient;
  readonly #rules: TemplateRules;
  readonly #entries = new Map<string, Entry>();

  constructor(world: Pick<World, 'monotonic'>, client: VcenterClient, rules: TemplateRules) {
    this.#world = world;
    this.#client = client;
    this.#rules = rules;
  }

  /** Returns the target of a request. @throws VsphereError, ReportedError */
  find(datacenter: Datacenter, request: CloneRequest): Promise<CloneTarget> {
    const key = keyOf(datacenter, request);
    const cached = this.#entries.get(key);
    if (cached !== undefined && cached.until > this.#world.monotonic()) return cached.target;
    const target = this.#lookUp(datacenter, request);
    this.#entries.set(key, { until: this.#world.monotonic() + CACHED_MS, target });
    target.catch(() => this.#entries.delete(key));
    return target;
  }

  /** Drops a target, so that the next `find` looks it up again. */
  evict(datacenter: Datacenter, request: CloneRequest): void {
    this.#entries.delete(keyOf(datacenter, request));
  }

  async #lookUp(
    datacenter: Datacenter,
    { placement, template: name, linked }: CloneRequest,
  ): Promise<CloneTarget> {
    const { lookup } = this.#client;
    const { datastore, storagePolicy } = placement;
    const { folder: path, allowMachines } = this.#rules;
    const folder = path === undefined ? undefined : await lookup.folder(datacenter, path);
    const template = await lookup.template(datacenter, name, {
      folder,
      onlyTemplates: allowMachines !== true,
    });
    const resourcePool = await lookup.resourcePool(datacenter, resourcePoolIn(placement));
    return {
      template,
      resourcePool,
      ...(datastore !== undefined && { datastore: await lookup.datastore(datacenter, datastore) }),
      ...(storagePolicy !== undefined && { storagePolicy }),
      ...(linked && { linked: { snapshot: await this.#snapshotOf(template, name) } }),
    };
  }

  async #snapshotOf(template: Ref<'VirtualMachine'>, name: string): Promise<Ref<'VirtualMachineSnapshot'>> {
    const path = 'snapshot.currentSnapshot';
    const { [path]: snapshot } = await this.#client.read(template, [path]);
    if (isRef(snapshot, 'VirtualMachineSnapshot')) return snapshot;
    throw new ReportedError({
      reason: 'NoSnapshot',
      message: `template '${name}' has no snapshot for linked clones; take one, or set linked: false`,
    });
  }
}

/**
 * Returns the path of the resource pool. If the placement names a cluster and gives only the name of the pool, the pool
 * belongs to that cluster. If the placement gives no pool, returns the cluster.
 */
function resourcePoolIn({ cluster, resourcePool }: Placement): string | undefined {
  const isName = resourcePool !== undefined && !resourcePool.includes('/');
  return isName && cluster !== undefined ? `${cluster}/Resources/${resourcePool}` : (resourcePool ?? cluster);
}

function keyOf({ name }: Datacenter, { placement, template, linked }: CloneRequest): string {
  const { cluster, resourcePool, datastore, storagePolicy } = placement;
  return JSON.stringify([name, cluster, resourcePool, datastore, storagePolicy, template, linked]);
}
