import type { World } from '@vmwright/runtime';
import {
  type CloneOptions,
  type Datacenter,
  FaultError,
  isRef,
  type Ref,
  type Vcenter,
} from '@vmwright/vsphere';
import type { Placement } from './resource.ts';
import { ensureFolder, Root } from './root.ts';
import { GroupError, unreachable } from './trouble.ts';
import { Turns } from './turns.ts';

/** The folder that groups' folders are made in, unless said otherwise. */
export const DEFAULT_FOLDER = 'vm-operator';

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

/** What a clone goes to. */
export type Target = Pick<
  CloneOptions,
  'template' | 'resourcePool' | 'datastore' | 'storagePolicy' | 'linked'
>;

interface Remembered {
  readonly until: number;
  readonly target: Promise<Target>;
}

/** What was found by its name is taken to be there for so long. */
const REMEMBERED_MS = 60_000;
/** For which a first list may take. */
const SYNCED_MS = 30_000;

/** A vCenter, and what the groups on it share. */
export class Site implements AsyncDisposable {
  readonly name: string;
  readonly vcenter: Vcenter;
  readonly turns: Turns;
  readonly namespaces: readonly string[] | undefined;
  readonly #options: SiteOptions;
  readonly #opening = new Map<string, Promise<Root>>();
  readonly #open = new Map<string, Root>();
  readonly #targets = new Map<string, Remembered>();
  readonly #claims = new Map<string, Promise<unknown>>();
  #hosts: ReadonlyMap<string, string> = new Map();
  #hostsAt = Number.NEGATIVE_INFINITY;

  constructor(options: SiteOptions) {
    const { world, name, vcenter, namespaces, concurrency, wake } = options;
    this.#options = options;
    this.name = name;
    this.vcenter = vcenter;
    this.namespaces = namespaces;
    this.turns = new Turns({ world, most: concurrency, wake });
  }

  /** Where a group's machines go, by what it says and what we were told. */
  placementOf(wanted: Placement | undefined): Placement {
    return { ...this.#options.placement, ...wanted };
  }

  /** Those that are open. */
  get roots(): readonly Root[] {
    return [...new Set(this.#open.values())];
  }

  /**
   * The folder that groups' folders are in, with all that is in it. Opened without anybody's signal: who has asked first
   * may be the first to give up.
   * @throws VsphereError, GroupError
   */
  root({ datacenter, folder = DEFAULT_FOLDER }: Placement, allow: () => void): Promise<Root> {
    const key = `${datacenter ?? ''}\n${folder}`;
    const open = this.#open.get(key);
    if (open !== undefined) return Promise.resolve(open);
    const opening =
      this.#opening.get(key) ?? this.alone('open', () => this.#enter(key, datacenter, folder, allow));
    this.#opening.set(key, opening);
    return opening;
  }

  /** Whether its folder is not there any more; not as long as nobody can tell. */
  async isGone({ folder }: Root): Promise<boolean> {
    try {
      await this.vcenter.read(folder, ['name']);
      return false;
    } catch (error) {
      return error instanceof FaultError && error.code === 'OBJECT_NOT_FOUND';
    }
  }

  /** It is opened anew when it is asked for the next time: the folder may be another one by now. */
  close(root: Root): void {
    for (const [key, open] of this.#open) if (open === root) this.#open.delete(key);
    root[Symbol.dispose]();
  }

  /** What clones go to, by the names that people give. @throws VsphereError, GroupError */
  target(datacenter: Datacenter, placement: Placement, template: string, linked: boolean): Promise<Target> {
    const { world } = this.#options;
    const key = JSON.stringify([datacenter.name, placement, template, linked]);
    const known = this.#targets.get(key);
    if (known !== undefined && known.until > world.monotonic()) return known.target;
    const target = this.#find(datacenter, placement, template, linked);
    this.#targets.set(key, { until: world.monotonic() + REMEMBERED_MS, target });
    target.catch(() => this.#targets.delete(key));
    return target;
  }

  /** What was found is looked for anew: it may have been the reason of a failure. */
  forgetTargets(): void {
    this.#targets.clear();
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

  /** What a host is called; its reference as long as that is not known. */
  hostName({ value }: Ref): string {
    return this.#hosts.get(value) ?? value;
  }

  /** Learns what hosts are called, where there is one that is not known. */
  async learnHosts(hosts: Iterable<Ref>): Promise<void> {
    const now = this.#options.world.monotonic();
    const isKnown = [...hosts].every(({ value }) => this.#hosts.has(value));
    if (isKnown || now - this.#hostsAt < REMEMBERED_MS) return;
    this.#hostsAt = now;
    const all = await this.vcenter.list('HostSystem', ['name']);
    this.#hosts = new Map(all.map(({ ref: { value }, properties: { name = value } }) => [value, name]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.vcenter.stop();
  }

  async #enter(key: string, name: string | undefined, path: string, allow: () => void): Promise<Root> {
    const { world, wake } = this.#options;
    const { vcenter } = this;
    try {
      const datacenter = await vcenter.lookup.datacenter(name);
      const folder = await ensureFolder(vcenter, datacenter, path, { allow });
      // By whatever name it was asked for, it is one.
      const open = this.roots.find((root) => root.folder.value === folder.value);
      const root = open ?? new Root({ world, vcenter, datacenter, folder, wake });
      if (open === undefined) await this.#synced(root);
      this.#open.set(key, root);
      return root;
    } finally {
      this.#opening.delete(key);
    }
  }

  async #synced(root: Root): Promise<void> {
    const late = new AbortController();
    const timer = this.#options.world.after(SYNCED_MS, () => late.abort(unreachable(this.name)));
    try {
      await root.synced(late.signal);
    } catch (error) {
      root[Symbol.dispose]();
      throw error;
    } finally {
      timer.cancel();
    }
  }

  async #find(
    datacenter: Datacenter,
    { cluster, resourcePool, datastore, storagePolicy }: Placement,
    name: string,
    linked: boolean,
  ): Promise<Target> {
    const { lookup } = this.vcenter;
    const template = await lookup.template(datacenter, name);
    const pool = await lookup.resourcePool(datacenter, resourcePool ?? cluster);
    const store = datastore === undefined ? undefined : await lookup.datastore(datacenter, datastore);
    return {
      template,
      resourcePool: pool,
      ...(store !== undefined && { datastore: store }),
      ...(storagePolicy !== undefined && { storagePolicy }),
      ...(linked && { linked: { snapshot: await this.#snapshotOf(template, name) } }),
    };
  }

  async #snapshotOf(template: Ref<'VirtualMachine'>, name: string): Promise<Ref<'VirtualMachineSnapshot'>> {
    const path = 'snapshot.currentSnapshot';
    const { [path]: snapshot } = await this.vcenter.read(template, [path]);
    if (isRef(snapshot, 'VirtualMachineSnapshot')) return snapshot;
    throw new GroupError({
      reason: 'NoSnapshot',
      message: `template '${name}' has no snapshot for linked clones to build on; take one, or set linked: false`,
    });
  }
}
