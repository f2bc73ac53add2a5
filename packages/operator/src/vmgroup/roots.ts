import type { Timer, World } from '@vmwright/runtime';
import { type Datacenter, ensureFolder, FaultError, type Ref, type VcenterClient } from '@vmwright/vsphere';
import type { VcenterHealth } from './health.ts';
import type { Placed } from './resource.ts';
import { Root } from './root.ts';

/** The folder that groups' folders are made in, unless said otherwise. */
export const DEFAULT_FOLDER = 'vm-operator';

export interface RootsOptions {
  readonly world: World;
  readonly vcenter: VcenterClient;
  readonly health: VcenterHealth;
  readonly wake: (group: string) => void;
}

interface Opening {
  readonly since: number;
  readonly root: Promise<Root>;
  /** Why it was not opened. */
  failure?: { readonly error: unknown };
}

/** A reconcile waits so long for a folder that is being opened. */
const SOON_MS = 1_000;
/** A failed opening is reported for so long; then it is tried again. */
const FAILED_MS = 3_000;
/** Time for a first list. */
const SYNCED_MS = 60_000;
/** A folder that no group uses is watched for so long: whoever deletes a group may create the next one. */
const UNUSED_MS = 60_000;

/**
 * The watched folders of a vCenter: those that groups' folders are in. Each is opened once, when it is first asked for,
 * beside the others, and closed when no group has used it for a minute.
 */
export class Roots {
  readonly #options: RootsOptions;
  /** By datacenter and path, as groups name them. */
  readonly #opening = new Map<string, Opening>();
  readonly #open = new Map<string, Root>();
  /** By reference: two paths may mean the same folder. */
  readonly #watched = new Map<string, Promise<Root>>();
  readonly #unusedSince = new Map<string, number>();

  constructor(options: RootsOptions) {
    this.#options = options;
  }

  get open(): readonly Root[] {
    return [...new Set(this.#open.values())];
  }

  isOpen(placement: Placed): boolean {
    return this.#open.has(keyOf(placement));
  }

  /**
   * The watched folder of a placement. A reconcile does not wait for one that takes long to open, or it would hold up the
   * groups of others.
   * @returns undefined while it is being opened
   * @throws VsphereError, GroupError, VcenterOutageError
   */
  async get(placement: Placed, assertLeader: () => void): Promise<Root | undefined> {
    const { world, health } = this.#options;
    const key = keyOf(placement);
    const open = this.#open.get(key);
    if (open !== undefined) return open;
    const opening = this.#opening.get(key) ?? this.#begin(key, placement, assertLeader);
    if (opening.failure !== undefined) throw opening.failure.error;
    const waitedMs = world.monotonic() - opening.since;
    const found = waitedMs > SOON_MS || health.isFailing ? undefined : await soon(world, opening.root);
    if (found === undefined && health.isFailing) throw health.outage();
    return found;
  }

  /** Closes the folders that none of these placements has named for a while. */
  keep(placements: Iterable<Placed>): void {
    const now = this.#options.world.monotonic();
    const used = new Set<string>();
    for (const placement of placements) used.add(keyOf(placement));
    for (const key of this.#open.keys()) {
      const since = this.#unusedSince.get(key) ?? now;
      if (used.has(key)) this.#unusedSince.delete(key);
      else if (now - since < UNUSED_MS) this.#unusedSince.set(key, since);
      else this.#release(key);
    }
  }

  #release(key: string): void {
    const root = this.#open.get(key);
    this.#unusedSince.delete(key);
    this.#open.delete(key);
    if (root !== undefined && !this.open.includes(root)) this.close(root);
  }

  /** Whether its folder is not there any more; not as long as nobody can tell. */
  async isGone({ folder }: Pick<Root, 'folder'>): Promise<boolean> {
    try {
      await this.#options.vcenter.read(folder, ['name']);
      return false;
    } catch (error) {
      return error instanceof FaultError && error.code === 'OBJECT_NOT_FOUND';
    }
  }

  /** Ends the watch. The folder is opened again when it is asked for: by then it may be another one. */
  close(root: Root): void {
    for (const [key, open] of this.#open) if (open === root) this.#open.delete(key);
    this.#watched.delete(root.folder.value);
    root[Symbol.dispose]();
  }

  /** Not by the signal of the reconcile that asks first: others wait for the folder too. */
  #begin(key: string, placement: Placed, assertLeader: () => void): Opening {
    const { world } = this.#options;
    const root = this.#enter(key, placement, assertLeader);
    const opening: Opening = { since: world.monotonic(), root };
    this.#opening.set(key, opening);
    const end = () => void this.#opening.delete(key);
    root.then(end, (error: unknown) => {
      opening.failure = { error }; // for reconciles that come later: the one that asked has given up waiting
      world.after(FAILED_MS, end);
    });
    return opening;
  }

  async #enter(
    key: string,
    { datacenter: name, folder: path = DEFAULT_FOLDER, folderId }: Placed,
    assertLeader: () => void,
  ): Promise<Root> {
    const { vcenter } = this.#options;
    const datacenter = await vcenter.lookup.datacenter(name);
    const folder =
      (await this.#renamed(folderId)) ?? (await ensureFolder(vcenter, datacenter, path, { assertLeader }));
    const watched = this.#watched.get(folder.value) ?? this.#watch(datacenter, folder);
    const root = await watched;
    this.#open.set(key, root);
    return root;
  }

  /** The folder that a group was placed in, whatever it is called by now; undefined where it is gone. */
  async #renamed(folderId: string | undefined): Promise<Ref<'Folder'> | undefined> {
    if (folderId === undefined) return undefined;
    const folder: Ref<'Folder'> = { type: 'Folder', value: folderId };
    return (await this.isGone({ folder })) ? undefined : folder;
  }

  #watch(datacenter: Datacenter, folder: Ref<'Folder'>): Promise<Root> {
    const { world, vcenter, wake } = this.#options;
    const watched = (async () => {
      const { about } = await vcenter.about();
      const { instanceUuid: vcenterId = '' } = about;
      const root = new Root({ world, vcenter, datacenter, folder, vcenterId, wake });
      await this.#synced(root);
      return root;
    })();
    this.#watched.set(folder.value, watched);
    watched.catch(() => this.#watched.delete(folder.value));
    return watched;
  }

  async #synced(root: Root): Promise<void> {
    const { world, health } = this.#options;
    const late = new AbortController();
    const timer = world.after(SYNCED_MS, () => late.abort(health.outage()));
    try {
      await root.synced(late.signal);
    } catch (error) {
      root[Symbol.dispose]();
      throw error;
    } finally {
      timer.cancel();
    }
  }
}

function keyOf({ datacenter = '', folder = DEFAULT_FOLDER, folderId = '' }: Placed): string {
  return `${datacenter}\n${folder}\n${folderId}`;
}

/** What it gives, where it does so soon. */
async function soon<T>(world: Pick<World, 'after'>, promise: Promise<T>): Promise<T | undefined> {
  let timer: Timer | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = world.after(SOON_MS, () => resolve(undefined));
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    timer?.cancel();
  }
}
