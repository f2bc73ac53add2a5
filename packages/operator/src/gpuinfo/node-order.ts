import type { Candidate } from './candidate.ts';
import type { Occupancy } from './occupancy.ts';
import type { Request } from './request.ts';

/** Nodes, sorted once by CPU usage and once by memory usage. */
export class NodeOrder {
  readonly #byCpu: readonly Candidate[];
  #byMemory: readonly Candidate[] | undefined;

  constructor(candidates: readonly Candidate[]) {
    this.#byCpu = candidates.toSorted(leastCpu);
  }

  /** Returns the suitable node that the policy of a request prefers; undefined if none is suitable. */
  best(
    { uid, policy }: Request,
    occupancy: Occupancy,
    isSuitable: (node: Candidate) => boolean,
  ): Candidate | undefined {
    if (policy === 'LeastMemory') return this.#sortedByMemory.find(isSuitable);
    if (policy === 'LeastCpu') return this.#byCpu.find(isSuitable);
    let best: { readonly node: Candidate; readonly room: number } | undefined;
    for (const node of this.#byCpu) {
      if (!isSuitable(node)) continue;
      const room =
        node.gpus === undefined
          ? -occupancy.reservationsOn(node.name)
          : occupancy.freeFor(uid, node.gpus.pool);
      const isBetter = best === undefined || (policy === 'Pack' ? room < best.room : room > best.room);
      if (isBetter) best = { node, room };
    }
    return best?.node;
  }

  get #sortedByMemory(): readonly Candidate[] {
    this.#byMemory ??= this.#byCpu.toSorted((a, b) => a.memoryUsage - b.memoryUsage || leastCpu(a, b));
    return this.#byMemory;
  }
}

function leastCpu(a: Candidate, b: Candidate): number {
  return a.cpuUsage - b.cpuUsage || (a.name < b.name ? -1 : 1);
}
