import { BLIND_MS } from './health.ts';
import type { Root } from './root.ts';
import type { Site } from './site.ts';

interface Known {
  readonly open: number;
  readonly isBlind: boolean;
  readonly isDown: boolean;
}

/** Notices when a vCenter or one of its watched folders becomes unavailable, and when it is available again. */
export class Liveness {
  readonly #sites: Iterable<Site>;
  readonly #known = new Map<Site, Known>();
  readonly #asked = new Set<Root>();

  constructor(sites: Iterable<Site>) {
    this.#sites = sites;
  }

  /** The vCenters whose availability has changed since the last call, or of which more is known. */
  changed(): ReadonlySet<Site | undefined> {
    const changed = new Set<Site>();
    for (const site of this.#sites) {
      const { open } = site.roots;
      const blind = open.filter((root) => root.blindMs > BLIND_MS);
      const before = this.#known.get(site) ?? { open: 0, isBlind: false, isDown: false };
      const now = { open: open.length, isBlind: blind.length > 0, isDown: site.health.isDown };
      const isSame =
        now.open <= before.open && now.isBlind === before.isBlind && now.isDown === before.isDown;
      if (!isSame) changed.add(site);
      site.health.probe();
      this.#known.set(site, now);
      for (const root of blind) void this.#closeIfGone(site, root);
    }
    return changed;
  }

  /** A folder that is gone cannot be followed; one that is made in its place can. */
  async #closeIfGone({ roots }: Site, root: Root): Promise<void> {
    if (this.#asked.has(root)) return;
    this.#asked.add(root);
    if (await roots.isGone(root)) roots.close(root);
    this.#asked.delete(root);
  }
}
