import type { Site } from './site.ts';

/** Not known for so long, what is there is told as unknown; before, it is only not acted upon. */
export const BLIND_MS = 10_000;

/** Notices when nothing is heard any more of what a vCenter has, and when it is again. */
export class Watchfulness {
  readonly #sites: Iterable<Site>;
  readonly #blind = new Set<Site>();

  constructor(sites: Iterable<Site>) {
    this.#sites = sites;
  }

  /** Those that have gone blind, or see again, since this was asked last. */
  async changed(): Promise<ReadonlySet<Site | undefined>> {
    const changed = new Set<Site>();
    for (const site of this.#sites) {
      const blind = site.roots.filter((root) => root.blindMs > BLIND_MS);
      const isBlind = blind.length > 0;
      if (isBlind !== this.#blind.has(site)) changed.add(site);
      if (isBlind) this.#blind.add(site);
      else this.#blind.delete(site);
      // A folder that is gone cannot be followed; one that is made in its place can.
      for (const root of blind) if (await site.isGone(root)) site.close(root);
    }
    return changed;
  }
}
