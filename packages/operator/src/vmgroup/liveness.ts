import type { Root } from './root.ts';
import { BLIND_MS } from './roots.ts';
import type { Site } from './site.ts';

interface Known {
  readonly open: number;
  readonly isBlind: boolean;
}

/** Notices when nothing is heard any more of what a vCenter has, and when it is again. */
export class Liveness {
  readonly #sites: Iterable<Site>;
  readonly #known = new Map<Site, Known>();
  readonly #asked = new Set<Root>();

  constructor(sites: Iterable<Site>) {
    this.#sites = sites;
  }

  /** Sites that have gone blind, see again, or see more, since this was asked last. */
  changed(): ReadonlySet<Site | undefined> {
    const changed = new Set<Site>();
    for (const site of this.#sites) {
      const { open } = site.roots;
      const blind = open.filter((root) => root.blindMs > BLIND_MS);
      const before = this.#known.get(site) ?? { open: 0, isBlind: false };
      const now = { open: open.length, isBlind: blind.length > 0 };
      if (now.open !== before.open || now.isBlind !== before.isBlind) changed.add(site);
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
