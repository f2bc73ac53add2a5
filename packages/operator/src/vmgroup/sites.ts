import type { VmGroup } from './resource.ts';
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

  /** That of a group: where its machines are; else the one that it names, of its namespace, or for all others. */
  find(group: VmGroup): Site | undefined {
    const name = nameIn(group);
    if (name !== undefined) return this.#sites.find((site) => site.name === name);
    const { namespace = '' } = group.metadata;
    return (
      this.#sites.find(({ namespaces }) => namespaces?.includes(namespace)) ??
      this.#sites.find(({ namespaces }) => namespaces === undefined)
    );
  }

  /** The same. @throws GroupError where there is none */
  of(group: VmGroup): Site {
    const site = this.find(group);
    if (site !== undefined) return site;
    const [name, names] = [nameIn(group), this.#sites.map((each) => each.name).join(', ')];
    const message =
      name === undefined
        ? `no vCenter is meant for the namespace '${group.metadata.namespace}'; name one in spec.placement.vcenter (there are ${names})`
        : `there is no vCenter '${name}' in the file of vCenters (there are ${names})`;
    throw new GroupError({ reason: 'UnknownVcenter', message });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#sites.map((site) => site[Symbol.asyncDispose]()));
  }
}

function nameIn({ spec, status }: VmGroup): string | undefined {
  return status?.vcenter ?? spec.placement?.vcenter;
}
