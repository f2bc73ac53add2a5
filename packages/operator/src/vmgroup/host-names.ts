import type { World } from '@vmwright/runtime';
import type { Ref, Vcenter } from '@vmwright/vsphere';

/** One that vCenter does not tell of is not asked for again before. */
const AGAIN_MS = 60_000;

/** What the hosts of a vCenter are called. */
export class HostNames {
  readonly #world: Pick<World, 'monotonic'>;
  readonly #vcenter: Vcenter;
  readonly #asked = new Map<string, number>();
  #names: ReadonlyMap<string, string> = new Map();

  constructor(world: Pick<World, 'monotonic'>, vcenter: Vcenter) {
    this.#world = world;
    this.#vcenter = vcenter;
  }

  /** Its reference, where nobody knows a name. */
  of({ value }: Ref): string {
    return this.#names.get(value) ?? value;
  }

  /** Learns what those are called that are not known. */
  async learn(hosts: Iterable<Ref>): Promise<void> {
    const now = this.#world.monotonic();
    const isNew = ({ value }: Ref) =>
      !this.#names.has(value) && now - (this.#asked.get(value) ?? Number.NEGATIVE_INFINITY) > AGAIN_MS;
    const unknown = [...hosts].filter(isNew);
    if (unknown.length === 0) return;
    for (const { value } of unknown) this.#asked.set(value, now);
    const all = await this.#vcenter.list('HostSystem', ['name']);
    this.#names = new Map(all.map(({ ref: { value }, properties: { name = value } }) => [value, name]));
  }
}
