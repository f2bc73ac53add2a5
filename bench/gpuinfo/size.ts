/** Size of the cluster, as the bar demands. */
export const NODES = 500;
export const REQUESTS = 200;
/** Number of requests of a cluster in which no request can be answered. */
export const PENDING = 3_000;

/** Returns the name of a node. Nodes with an even number have GPUs. */
export function nodeName(index: number): string {
  return `node-${String(index).padStart(3, '0')}`;
}

export function hasGpus(index: number): boolean {
  return index % 2 === 0;
}

/**
 * Returns the spec of a request: most need one GPU for a different time, some need a node without GPUs, and one in ten asks for more
 * GPUs than any node has, so that the reasons of all nodes are evaluated for it on every change.
 */
export function specOf(index: number): {
  readonly desAccTime: number;
  readonly gpuRequired: boolean;
  readonly gpuCount?: number;
} {
  if (index % 10 === 0) return { desAccTime: 100, gpuRequired: true, gpuCount: 8 };
  return { desAccTime: 100 + index, gpuRequired: index % 5 !== 0 };
}

/** Returns the spec of a request that no node meets. There are 20 different ones. */
export function pendingSpecOf(index: number): ReturnType<typeof specOf> {
  return { desAccTime: 100 + (index % 20), gpuRequired: true, gpuCount: 8 };
}
