import type { World } from '@vmwright/runtime';
import type { Ref, VcenterClient } from '@vmwright/vsphere';

/** One that vCenter does not tell of is not asked for again before. */
const AGAIN_MS = 60_000;

/** What the hosts of a vCenter are called. */
export class HostNames {
  readonly #world: Pick<World, 'monotonic'>;
  readonly #vcenter: VcenterClient;
  /** When those were asked for that vCenter did not tell of. */
  readonly #missing = new Map<string, number>();
  #names: ReadonlyMap<string, string> = new Map();
  #learning: Promise<void> | undefined;

  constructor(world: Pick<World, 'monotonic'>, vcenter: VcenterClient) {
    this.#world = world;
    this.#vcenter = vcenter;
  }

  /** Its reference, where nobody knows a name. */
  of({ value }: Ref): string {
    return this.#names.get(value) ?? value;
  }

  /** Learns what those are called that are not known. */
  async learn(hosts: Iterable<Ref>): Promise<void> {
    const all = [...hosts];
    await this.#learning?.catch(() => undefined); // what another has asked for, just now
    const unknown = all.filter(({ value }) => this.#isUnknown(value));
    if (unknown.length === 0) return;
    this.#learning ??= this.#ask().finally(() => {
      this.#learning = undefined;
    });
    await this.#learning;
    for (const { value } of unknown)
      if (!this.#names.has(value)) this.#missing.set(value, this.#world.monotonic());
  }

  #isUnknown(value: string): boolean {
    const missingSince = this.#missing.get(value) ?? Number.NEGATIVE_INFINITY;
    return !this.#names.has(value) && this.#world.monotonic() - missingSince > AGAIN_MS;
  }

  async #ask(): Promise<void> {
    const all = await this.#vcenter.list('HostSystem', ['name']);
    this.#names = new Map(all.map(({ ref: { value }, properties: { name = value } }) => [value, name]));
  }
}
