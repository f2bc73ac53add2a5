import type { Timer, World } from '@vmwright/runtime';
import { FaultError, type Vcenter } from '@vmwright/vsphere';
import type { Placement } from './resource.ts';
import { ensureFolder, Root } from './root.ts';
import { unreachable } from './trouble.ts';

/** The folder that groups' folders are made in, unless said otherwise. */
export const DEFAULT_FOLDER = 'vm-operator';

/** Not known for so long, what is there is told as unknown; before, it is only not acted upon. */
export const BLIND_MS = 10_000;

export interface RootsOptions {
  readonly world: World;
  /** Of the vCenter, as people call it. */
  readonly name: string;
  readonly vcenter: Vcenter;
  readonly wake: (group: string) => void;
}

interface Opening {
  readonly since: number;
  readonly root: Promise<Root>;
  /** Why it was not opened. */
  failure?: { readonly error: unknown };
}

/** One that is opened within this time is waited for. */
const SOON_MS = 1_000;
/** Why one could not be opened is told for so long; then it is tried again. */
const FAILED_MS = 3_000;
/** What a first list may take. */
const SYNCED_MS = 60_000;

/** The folders of a vCenter that groups' folders are in, each opened once, when it is first asked for. */
export class Roots {
  readonly #options: RootsOptions;
  readonly #opening = new Map<string, Opening>();
  readonly #open = new Map<string, Root>();
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: RootsOptions) {
    this.#options = options;
  }

  get open(): readonly Root[] {
    return [...new Set(this.#open.values())];
  }

  /**
   * The one of a placement, with all that is in it. Nobody waits for a vCenter that takes its time, or its groups would
   * keep those of others from being looked at.
   * @returns undefined while it is being opened
   * @throws VsphereError, GroupError
   */
  async get(
    { datacenter, folder = DEFAULT_FOLDER }: Placement,
    allow: () => void,
  ): Promise<Root | undefined> {
    const { world, name } = this.#options;
    const key = `${datacenter ?? ''}\n${folder}`;
    const open = this.#open.get(key);
    if (open !== undefined) return open;
    const opening = this.#opening.get(key) ?? this.#begin(key, datacenter, folder, allow);
    if (opening.failure !== undefined) throw opening.failure.error;
    const waitedMs = world.monotonic() - opening.since;
    if (waitedMs > BLIND_MS) throw unreachable(name);
    return waitedMs > SOON_MS ? undefined : soon(world, opening.root);
  }

  /** Whether its folder is not there any more; not as long as nobody can tell. */
  async isGone({ folder }: Root): Promise<boolean> {
    try {
      await this.#options.vcenter.read(folder, ['name']);
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

  /** Without anybody's signal: who has asked first may be the first to give up. */
  #begin(key: string, datacenter: string | undefined, folder: string, allow: () => void): Opening {
    // One after the other: by whatever name it is asked for, a folder is opened once.
    const root = this.#last.catch(() => undefined).then(() => this.#enter(key, datacenter, folder, allow));
    this.#last = root;
    const { world } = this.#options;
    const opening: Opening = { since: world.monotonic(), root };
    this.#opening.set(key, opening);
    const end = () => void this.#opening.delete(key);
    root.then(end, (error: unknown) => {
      // Kept for a while: by now nobody may be waiting who could tell.
      opening.failure = { error };
      world.after(FAILED_MS, end);
    });
    return opening;
  }

  async #enter(key: string, name: string | undefined, path: string, allow: () => void): Promise<Root> {
    const { world, vcenter, wake } = this.#options;
    const datacenter = await vcenter.lookup.datacenter(name);
    const folder = await ensureFolder(vcenter, datacenter, path, { allow });
    const { about } = await vcenter.about();
    const { instanceUuid: vcenterId = '' } = about;
    const known = this.open.find((root) => root.folder.value === folder.value);
    const root = known ?? new Root({ world, vcenter, datacenter, folder, vcenterId, wake });
    if (known === undefined) await this.#synced(root);
    this.#open.set(key, root);
    return root;
  }

  async #synced(root: Root): Promise<void> {
    const { world, name } = this.#options;
    const late = new AbortController();
    const timer = world.after(SYNCED_MS, () => late.abort(unreachable(name)));
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
