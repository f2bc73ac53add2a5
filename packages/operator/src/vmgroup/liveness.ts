import { BLIND_MS } from './health.ts';
import type { Root } from './root.ts';

/** A watched folder, as far as its availability goes. */
export type LiveRoot = Pick<Root, 'folder' | 'blindMs'>;

/** A vCenter, as far as its availability goes. */
interface LiveSite {
  readonly roots: {
    readonly open: readonly LiveRoot[];
    isGone(root: LiveRoot): Promise<boolean>;
    close(root: LiveRoot): void;
  };
  readonly health: { readonly isDown: boolean; probe(): void };
}

interface Known {
  readonly open: number;
  readonly blind: ReadonlySet<LiveRoot>;
  readonly isDown: boolean;
}

/** Notices when a vCenter or one of its watched folders becomes unavailable, and when it is available again. */
export class Liveness<S extends LiveSite> {
  readonly #sites: Iterable<S>;
  readonly #known = new Map<S, Known>();
  readonly #asked = new Set<LiveRoot>();

  constructor(sites: Iterable<S>) {
    this.#sites = sites;
  }

  /** The vCenters whose availability has changed since the last call, or of which more is known. */
  changed(): ReadonlySet<S | undefined> {
    const changed = new Set<S>();
    for (const site of this.#sites) {
      const { open } = site.roots;
      const blind = new Set(open.filter((root) => root.blindMs > BLIND_MS));
      const before = this.#known.get(site) ?? { open: 0, blind: new Set(), isDown: false };
      const now = { open: open.length, blind, isDown: site.health.isDown };
      // Each folder by itself: one that stays unavailable must not hide another.
      const isBlindSame = blind.symmetricDifference(before.blind).size === 0;
      const isSame = now.open <= before.open && isBlindSame && now.isDown === before.isDown;
      if (!isSame) changed.add(site);
      site.health.probe();
      this.#known.set(site, now);
      for (const root of blind) void this.#closeIfGone(site, root);
    }
    return changed;
  }

  /** A folder that is gone cannot be followed; one that is made in its place can. */
  async #closeIfGone({ roots }: LiveSite, root: LiveRoot): Promise<void> {
    if (this.#asked.has(root)) return;
    this.#asked.add(root);
    if (await roots.isGone(root)) roots.close(root);
    this.#asked.delete(root);
  }
}
