import type { World } from '@vmwright/runtime';
import type { Vcenter } from '@vmwright/vsphere';
import { HostNames } from './host-names.ts';
import type { Placement } from './resource.ts';
import { Roots } from './roots.ts';
import { Targets } from './targets.ts';
import { Turns } from './turns.ts';

export interface SiteOptions {
  readonly world: World;
  /** As people call it. */
  readonly name: string;
  readonly vcenter: Vcenter;
  /** Where machines go when a group does not say. */
  readonly placement: Placement;
  /** Whose groups are here unless they say otherwise; undefined: those of all that no other site has. */
  readonly namespaces?: readonly string[] | undefined;
  /** How much vCenter is kept busy with at a time. */
  readonly concurrency: number;
  readonly wake: (group: string) => void;
}

/** A vCenter, and what the groups on it share. */
export class Site implements AsyncDisposable {
  readonly name: string;
  readonly vcenter: Vcenter;
  readonly namespaces: readonly string[] | undefined;
  readonly turns: Turns;
  readonly roots: Roots;
  readonly targets: Targets;
  readonly hosts: HostNames;
  readonly #placement: Placement;
  readonly #claims = new Map<string, Promise<unknown>>();

  constructor({ world, name, vcenter, placement, namespaces, concurrency, wake }: SiteOptions) {
    this.name = name;
    this.vcenter = vcenter;
    this.namespaces = namespaces;
    this.turns = new Turns({ world, most: concurrency, wake });
    this.roots = new Roots({ world, name, vcenter, wake });
    this.targets = new Targets(world, vcenter);
    this.hosts = new HostNames(world, vcenter);
    this.#placement = placement;
  }

  /** Where a group's machines go, by what it says and what we were told. */
  placementOf(wanted: Placement = {}): Placement {
    const { resourcePool, ...others } = this.#placement;
    const isElsewhere = wanted.cluster !== undefined && wanted.cluster !== others.cluster;
    // The pool that we were told of is in another cluster.
    return { ...others, ...(resourcePool !== undefined && !isElsewhere && { resourcePool }), ...wanted };
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
