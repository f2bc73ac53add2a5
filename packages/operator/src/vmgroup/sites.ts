import type { Placed, VmGroup } from './resource.ts';
import type { Site } from './site.ts';
import { GroupError } from './trouble.ts';

/** Which vCenter each group is on. */
export class Sites implements AsyncDisposable {
  readonly #sites: readonly Site[];

  constructor(sites: readonly Site[]) {
    this.#sites = sites;
  }

  [Symbol.iterator](): Iterator<Site> {
    return this.#sites[Symbol.iterator]();
  }

  /**
   * The vCenter of a group: the one where its machines are, else the one that it names, else the one of its namespace, else
   * the one for all. A vCenter that does not admit the group's namespace does not exist for it.
   */
  find(group: VmGroup): Site | undefined {
    const name = nameIn(group);
    const admitting = this.#admitting(group);
    if (name !== undefined) return admitting.find((site) => site.name === name);
    return (
      admitting.find(({ namespaces }) => namespaces !== undefined) ??
      admitting.find(({ namespaces }) => namespaces === undefined)
    );
  }

  /** Closes watched folders that none of these groups uses. */
  keepRoots(groups: Iterable<VmGroup>): void {
    const used = new Map<Site, Placed[]>(this.#sites.map((site) => [site, []]));
    for (const group of groups) {
      const site = this.find(group);
      if (site !== undefined) used.get(site)?.push(site.placementFor(group));
    }
    for (const [site, placements] of used) site.roots.keep(placements);
  }

  /** The same. @throws GroupError where there is none */
  of(group: VmGroup): Site {
    const site = this.find(group);
    if (site !== undefined) return site;
    const [name, { namespace }] = [nameIn(group), group.metadata];
    const names = this.#admitting(group).map((each) => each.name);
    const there = names.length === 0 ? '' : ` (there are ${names.join(', ')})`;
    // The same whether the vCenter is unknown or another namespace's, whose names are not shown.
    const message =
      name === undefined
        ? `no vCenter is available to the namespace '${namespace}'; ask the administrator of the operator for one`
        : `no vCenter '${name}' is available to the namespace '${namespace}'${there}; correct spec.placement.vcenter`;
    throw new GroupError({ reason: 'UnknownVcenter', message });
  }

  #admitting({ metadata: { namespace = '' } }: VmGroup): readonly Site[] {
    return this.#sites.filter((site) => site.admits(namespace));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#sites.map((site) => site[Symbol.asyncDispose]()));
  }
}

function nameIn({ spec, status }: VmGroup): string | undefined {
  return status?.vcenter ?? spec.placement?.vcenter;
}
