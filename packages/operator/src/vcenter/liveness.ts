import { STALE_MS } from './health.ts';
import type { WatchedFolder } from './watched-folder.ts';

/** The properties of the class `WatchedFolder` that `Liveness` uses. */
export type LiveFolder = Pick<WatchedFolder, 'ref' | 'staleMs'>;

/** The properties of the class `VCenter` that `Liveness` uses. */
interface LiveVCenter {
  readonly folders: {
    readonly open: readonly LiveFolder[];
    isGone(folder: LiveFolder): Promise<boolean>;
    close(folder: LiveFolder): void;
  };
  readonly health: { readonly isDown: boolean; probe(): void };
}

interface Snapshot {
  readonly open: number;
  readonly stale: ReadonlySet<LiveFolder>;
  readonly isDown: boolean;
}

/** Detects when a vCenter or one of its watched folders becomes unavailable, and when it is available again. */
export class Liveness<V extends LiveVCenter> {
  readonly #vcenters: Iterable<V>;
  readonly #snapshots = new Map<V, Snapshot>();
  readonly #checking = new Set<LiveFolder>();

  constructor(vcenters: Iterable<V>) {
    this.#vcenters = vcenters;
  }

  /**
   * Returns the vCenters that changed since the last call: the vCenter or one of its folders became available or
   * unavailable, or a folder was opened.
   */
  changed(): ReadonlySet<V | undefined> {
    const changed = new Set<V>();
    for (const vcenter of this.#vcenters) {
      const { open } = vcenter.folders;
      const stale = new Set(open.filter((folder) => folder.staleMs > STALE_MS));
      const before = this.#snapshots.get(vcenter) ?? { open: 0, stale: new Set(), isDown: false };
      const now = { open: open.length, stale, isDown: vcenter.health.isDown };
      // Compares the sets of stale folders: if one folder stays stale, a change of another must still be detected.
      const isStaleSame = stale.symmetricDifference(before.stale).size === 0;
      const isSame = now.open <= before.open && isStaleSame && now.isDown === before.isDown;
      if (!isSame) changed.add(vcenter);
      vcenter.health.probe();
      this.#snapshots.set(vcenter, now);
      for (const folder of stale) void this.#closeIfGone(vcenter, folder);
    }
    return changed;
  }

  /** Stops watching a deleted folder, so that a new folder at the same path can be watched. */
  async #closeIfGone({ folders }: LiveVCenter, folder: LiveFolder): Promise<void> {
    if (this.#checking.has(folder)) return;
    this.#checking.add(folder);
    if (await folders.isGone(folder)) folders.close(folder);
    this.#checking.delete(folder);
  }
}
