import type { Timer, World } from '@vmwright/runtime';
import { type Datacenter, ensureFolder, FaultError, type Ref, type VcenterClient } from '@vmwright/vsphere';
import type { VcenterHealth } from './health.ts';
import { DEFAULT_FOLDER, type FolderPlacement } from './placement.ts';
import { WatchedFolder } from './watched-folder.ts';

export interface WatchedFoldersOptions {
  readonly world: World;
  readonly client: VcenterClient;
  readonly health: VcenterHealth;
  /** Called with the owner (`namespace/name`) of each machine that changes. */
  readonly enqueue: (owner: string) => void;
}

interface Opening {
  readonly since: number;
  readonly folder: Promise<WatchedFolder>;
  /** Why the folder could not be opened, and whether vCenter was failing at that time. */
  failure?: { readonly error: unknown; readonly isOutage: boolean };
}

/** Time for which a reconcile waits for a folder that is being opened. */
const OPEN_WAIT_MS = 1_000;
/** Time for which a failed opening is reported before the next attempt. */
const FAILED_MS = 3_000;
/** Timeout of the first complete read of the inventory of a folder. */
const SYNC_TIMEOUT_MS = 60_000;
/** Time for which a folder without a group stays open. Users often delete a group and then create another. */
const UNUSED_MS = 60_000;

/**
 * The watched folders of a vCenter. A folder is opened when the first group needs it, and closed when no group has used
 * it for a minute. Folders are opened concurrently.
 */
export class WatchedFolders {
  readonly #options: WatchedFoldersOptions;
  /** Folders that are being opened, or whose opening failed, by placement key. */
  readonly #opening = new Map<string, Opening>();
  /** Open folders by placement key. Several keys can mean the same folder. */
  readonly #open = new Map<string, WatchedFolder>();
  /** Watched folders by the value of their reference, including those that are being opened. */
  readonly #watched = new Map<string, Promise<WatchedFolder>>();
  readonly #unusedSince = new Map<string, number>();

  constructor(options: WatchedFoldersOptions) {
    this.#options = options;
  }

  get open(): readonly WatchedFolder[] {
    return [...new Set(this.#open.values())];
  }

  isOpen(placement: FolderPlacement): boolean {
    return this.#open.has(keyOf(placement));
  }

  /**
   * Returns the watched folder of a placement; undefined if the folder is not open after a second. So a folder that
   * opens slowly does not delay groups in other folders.
   * @throws VsphereError, ReportedError, VcenterOutageError
   */
  async get(placement: FolderPlacement, assertLeader: () => void): Promise<WatchedFolder | undefined> {
    const { world, health } = this.#options;
    const key = keyOf(placement);
    const open = this.#open.get(key);
    if (open !== undefined) return open;
    const opening = this.#currentOpening(key) ?? this.#startOpening(key, placement, assertLeader);
    if (opening.failure !== undefined) throw opening.failure.error;
    const waitedMs = world.monotonic() - opening.since;
    const folder =
      waitedMs > OPEN_WAIT_MS || health.isFailing
        ? undefined
        : await within(world, OPEN_WAIT_MS, opening.folder);
    if (folder === undefined && health.isFailing) throw health.outage();
    return folder;
  }

  /**
   * Returns the latest attempt to open a folder. Once vCenter responds again, an attempt that failed during the outage
   * is ignored.
   */
  #currentOpening(key: string): Opening | undefined {
    const opening = this.#opening.get(key);
    const isVoid = opening?.failure?.isOutage === true && !this.#options.health.isFailing;
    return isVoid ? undefined : opening;
  }

  /**
   * Closes the folders that no group has used for a minute.
   * @param placements current placements of all groups
   */
  closeUnused(placements: Iterable<FolderPlacement>): void {
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
    const folder = this.#open.get(key);
    this.#unusedSince.delete(key);
    this.#open.delete(key);
    if (folder !== undefined && !this.open.includes(folder)) this.close(folder);
  }

  /** Returns whether the folder does not exist in vCenter any more. False while vCenter does not respond. */
  async isGone({ ref }: Pick<WatchedFolder, 'ref'>): Promise<boolean> {
    try {
      await this.#options.client.read(ref, ['name']);
      return false;
    } catch (error) {
      return error instanceof FaultError && error.code === 'OBJECT_NOT_FOUND';
    }
  }

  /** Stops watching a folder. The next `get` of its placement opens it again, or a new folder at the same path. */
  close(folder: WatchedFolder): void {
    for (const [key, open] of this.#open) if (open === folder) this.#open.delete(key);
    this.#watched.delete(folder.ref.value);
    folder[Symbol.dispose]();
  }

  /**
   * Starts to open a folder. The attempt continues when the calling reconcile ends, because other reconciles may wait
   * for the same folder.
   */
  #startOpening(key: string, placement: FolderPlacement, assertLeader: () => void): Opening {
    const { world } = this.#options;
    const folder = this.#openFolder(key, placement, assertLeader);
    const opening: Opening = { since: world.monotonic(), folder };
    this.#opening.set(key, opening);
    const end = () => {
      if (this.#opening.get(key) === opening) this.#opening.delete(key);
    };
    folder.then(end, (error: unknown) => {
      // Stored for later reconciles, because the reconcile that started the attempt may have stopped waiting.
      opening.failure = { error, isOutage: this.#options.health.isFailing };
      world.after(FAILED_MS, end);
    });
    return opening;
  }

  async #openFolder(
    key: string,
    { datacenter: name, folder: path = DEFAULT_FOLDER, folderId }: FolderPlacement,
    assertLeader: () => void,
  ): Promise<WatchedFolder> {
    const { client } = this.#options;
    const datacenter = await client.lookup.datacenter(name);
    const ref =
      (await this.#byReference(folderId)) ?? (await ensureFolder(client, datacenter, path, { assertLeader }));
    const folder = await (this.#watched.get(ref.value) ?? this.#watch(datacenter, ref));
    this.#open.set(key, folder);
    return folder;
  }

  /** Returns the folder with this reference, even if people renamed it; undefined if it is gone. */
  async #byReference(folderId: string | undefined): Promise<Ref<'Folder'> | undefined> {
    if (folderId === undefined) return undefined;
    const ref: Ref<'Folder'> = { type: 'Folder', value: folderId };
    return (await this.isGone({ ref })) ? undefined : ref;
  }

  #watch(datacenter: Datacenter, ref: Ref<'Folder'>): Promise<WatchedFolder> {
    const { world, client, enqueue } = this.#options;
    const watched = (async () => {
      const { about } = await client.about();
      const { instanceUuid: vcenterId = '' } = about;
      const folder = new WatchedFolder({ world, client, datacenter, ref, vcenterId, enqueue });
      await this.#synced(folder);
      return folder;
    })();
    this.#watched.set(ref.value, watched);
    watched.catch(() => this.#watched.delete(ref.value));
    return watched;
  }

  async #synced(folder: WatchedFolder): Promise<void> {
    const { world, health } = this.#options;
    const timeout = new AbortController();
    const timer = world.after(SYNC_TIMEOUT_MS, () => timeout.abort(health.outage()));
    try {
      await folder.synced(timeout.signal);
    } catch (error) {
      folder[Symbol.dispose]();
      throw error;
    } finally {
      timer.cancel();
    }
  }
}

function keyOf({ datacenter = '', folder = DEFAULT_FOLDER, folderId = '' }: FolderPlacement): string {
  return `${datacenter}\n${folder}\n${folderId}`;
}

/** Resolves to the promise's value, or to undefined when it takes longer than `ms`. */
async function within<T>(
  world: Pick<World, 'after'>,
  ms: number,
  promise: Promise<T>,
): Promise<T | undefined> {
  let timer: Timer | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = world.after(ms, () => resolve(undefined));
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    timer?.cancel();
  }
}
