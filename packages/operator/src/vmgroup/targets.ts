import type { World } from '@vmwright/runtime';
import { type CloneOptions, type Datacenter, isRef, type Ref, type VcenterClient } from '@vmwright/vsphere';
import type { Placement, VmGroup } from './resource.ts';
import { GroupError } from './trouble.ts';

/** What a clone is made of, and goes to. */
export type Target = Pick<
  CloneOptions,
  'template' | 'resourcePool' | 'datastore' | 'storagePolicy' | 'linked'
>;

/** The same, with the folder that it is in. */
export type Destination = Target & { readonly folder: Ref<'Folder'> };

/** What clones are asked for, in people's words. */
export interface Wanted {
  readonly placement: Placement;
  readonly template: string;
  readonly linked: boolean;
}

export function wantedBy({ spec }: VmGroup, placement: Placement): Wanted {
  const { template, linked = false } = spec;
  return { placement, template, linked };
}

/** What machines may be cloned from. */
export interface TemplateRules {
  /** Path of the folder that templates are in; others do not exist for groups. */
  readonly folder?: string | undefined;
  /** Whether machines that are not templates may be cloned too. */
  readonly allowMachines?: boolean | undefined;
}

interface Remembered {
  readonly until: number;
  readonly target: Promise<Target>;
}

/** What was found by its name is taken to be there for so long. */
const REMEMBERED_MS = 60_000;

/** Finds what clones are made of and go to, by the names that people give. */
export class Targets {
  readonly #world: Pick<World, 'monotonic'>;
  readonly #vcenter: VcenterClient;
  readonly #rules: TemplateRules;
  readonly #known = new Map<string, Remembered>();

  constructor(world: Pick<World, 'monotonic'>, vcenter: VcenterClient, rules: TemplateRules = {}) {
    this.#world = world;
    this.#vcenter = vcenter;
    this.#rules = rules;
  }

  /** @throws VsphereError, GroupError */
  find(datacenter: Datacenter, wanted: Wanted): Promise<Target> {
    const key = keyOf(datacenter, wanted);
    const known = this.#known.get(key);
    if (known !== undefined && known.until > this.#world.monotonic()) return known.target;
    const target = this.#find(datacenter, wanted);
    this.#known.set(key, { until: this.#world.monotonic() + REMEMBERED_MS, target });
    target.catch(() => this.#known.delete(key));
    return target;
  }

  /** It is looked for anew: it may have been the reason of a failure. */
  forget(datacenter: Datacenter, wanted: Wanted): void {
    this.#known.delete(keyOf(datacenter, wanted));
  }

  async #find(datacenter: Datacenter, { placement, template: name, linked }: Wanted): Promise<Target> {
    const { lookup } = this.#vcenter;
    const { datastore, storagePolicy } = placement;
    const { folder: path, allowMachines } = this.#rules;
    const folder = path === undefined ? undefined : await lookup.folder(datacenter, path);
    const template = await lookup.template(datacenter, name, {
      folder,
      onlyTemplates: allowMachines !== true,
    });
    const resourcePool = await lookup.resourcePool(datacenter, poolIn(placement));
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
    const { [path]: snapshot } = await this.#vcenter.read(template, [path]);
    if (isRef(snapshot, 'VirtualMachineSnapshot')) return snapshot;
    throw new GroupError({
      reason: 'NoSnapshot',
      message: `template '${name}' has no snapshot for linked clones to build on; take one, or set linked: false`,
    });
  }
}

/** A pool's name is one in its cluster, where that is said as well. */
function poolIn({ cluster, resourcePool }: Placement): string | undefined {
  const isName = resourcePool !== undefined && !resourcePool.includes('/');
  return isName && cluster !== undefined ? `${cluster}/Resources/${resourcePool}` : (resourcePool ?? cluster);
}

function keyOf({ name }: Datacenter, { placement, template, linked }: Wanted): string {
  const { cluster, resourcePool, datastore, storagePolicy } = placement;
  return JSON.stringify([name, cluster, resourcePool, datastore, storagePolicy, template, linked]);
}
