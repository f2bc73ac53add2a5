import type { Logger, World } from '@vmwright/runtime';
import { HostNames, type VcenterClient } from '@vmwright/vsphere';
import { VcenterHealth } from './health.ts';
import type { Placed, Placement, VmGroup } from './resource.ts';
import { Roots } from './roots.ts';
import type { Action } from './slots.ts';
import { Targets, type TemplateRules } from './targets.ts';
import { Turns } from './turns.ts';

export interface SiteOptions {
  readonly world: World;
  readonly log: Logger;
  /** As people call it. */
  readonly name: string;
  readonly vcenter: VcenterClient;
  /** Where machines go when a group does not say. */
  readonly placement: Placement;
  /** The namespaces whose groups may be here. @default all */
  readonly namespaces?: readonly string[] | undefined;
  /** What machines may be cloned from. @default any template */
  readonly templates?: TemplateRules | undefined;
  /** Number of clones at a time, and of other tasks. */
  readonly concurrency: number;
  readonly wake: (group: string) => void;
}

/** A vCenter, and what the groups on it share. */
export class Site implements AsyncDisposable {
  readonly name: string;
  readonly vcenter: VcenterClient;
  readonly namespaces: readonly string[] | undefined;
  readonly health: VcenterHealth;
  readonly roots: Roots;
  readonly targets: Targets;
  readonly hosts: HostNames;
  readonly #placement: Placement;
  /** A clone takes minutes, any other task seconds: they have limits of their own, so that the one does not hold up the other. */
  readonly #limits: { readonly clones: Turns; readonly others: Turns };
  readonly #claims = new Map<string, Promise<unknown>>();

  constructor(options: SiteOptions) {
    const { world, log, name, vcenter, placement, namespaces, templates, concurrency: most, wake } = options;
    this.name = name;
    this.vcenter = vcenter;
    this.namespaces = namespaces;
    this.#limits = { clones: new Turns({ world, most, wake }), others: new Turns({ world, most, wake }) };
    this.health = new VcenterHealth({ world, log, name, vcenter });
    this.roots = new Roots({ world, vcenter, health: this.health, wake });
    this.targets = new Targets(world, vcenter, templates);
    this.hosts = new HostNames(world, vcenter);
    this.#placement = placement;
  }

  /** Whether groups of a namespace may be here. */
  admits(namespace: string): boolean {
    return this.namespaces === undefined || this.namespaces.includes(namespace);
  }

  /** The limit that an action counts towards. */
  turnsFor(action: Action['do']): Turns {
    return action === 'clone' ? this.#limits.clones : this.#limits.others;
  }

  /** A group waits for nothing any more. */
  leaveTurns(group: string): void {
    for (const turns of Object.values(this.#limits)) turns.leave(group);
  }

  /** Where a group's machines go, by what it says and what we were told. */
  placementOf(wanted: Placement = {}): Placement {
    const { resourcePool, ...others } = this.#placement;
    const isElsewhere = wanted.cluster !== undefined && wanted.cluster !== others.cluster;
    // The pool that we were told of is in another cluster.
    return { ...others, ...(resourcePool !== undefined && !isElsewhere && { resourcePool }), ...wanted };
  }

  /** Where a group's machines are, or go: its status says so once they are there. */
  placementFor({ spec, status }: VmGroup): Placed {
    const { datacenter, folder, folderId } = status ?? {};
    return {
      ...this.placementOf(spec.placement),
      ...(datacenter !== undefined && { datacenter }),
      ...(folder !== undefined && { folder }),
      ...(folderId !== undefined && { folderId }),
    };
  }

  /** One after the other for each name: of two that want the same, the second finds what the first has made of it. */
  async alone<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.#claims.get(name) ?? Promise.resolve();
    const mine = before.catch(() => undefined).then(work);
    this.#claims.set(name, mine);
    try {
      return await mine;
    } finally {
      if (this.#claims.get(name) === mine) this.#claims.delete(name);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.vcenter.stop();
  }
}
