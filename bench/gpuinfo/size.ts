/** Number of nodes and number of requests. The limits of this benchmark apply to this size. */
export const NODES = 500;
export const REQUESTS = 200;
/** Number of requests in the measurement in which all requests stay pending. */
export const PENDING = 3_000;

/** Returns the name of a node. Nodes with an even number have GPUs. */
export function nodeName(index: number): string {
  return `node-${String(index).padStart(3, '0')}`;
}

export function hasGpus(index: number): boolean {
  return index % 2 === 0;
}

/**
 * Returns the spec of a request. Of ten requests, eight need one GPU, and one needs a node without GPUs. The tenth asks
 * for more GPUs than any node has. It stays pending, so every change evaluates it against all nodes.
 */
export function specOf(index: number): {
  readonly desAccTime: number;
  readonly gpuRequired: boolean;
  readonly gpuCount?: number;
} {
  if (index % 10 === 0) return { desAccTime: 100, gpuRequired: true, gpuCount: 8 };
  return { desAccTime: 100 + index, gpuRequired: index % 5 !== 0 };
}

/** Returns one of 20 different specs. No node can meet any of them. */
export function pendingSpecOf(index: number): ReturnType<typeof specOf> {
  return { desAccTime: 100 + (index % 20), gpuRequired: true, gpuCount: 8 };
}
