import type { Candidate, Facts, GpuPool, JobFacts } from './candidate.ts';
import type { Request } from './request.ts';

/* Facts and requests for tests. */

/** A point in time that tests use as now. */
export const NOW = Date.parse('2026-01-05T08:00:00.000Z');

/** A node that is ready and has no GPU. */
export function node(name: string, fields: Partial<Candidate> = {}): Candidate {
  return {
    name,
    host: `host-of-${name}`,
    labels: {},
    blocker: undefined,
    gpus: undefined,
    cpuUsage: 100,
    memoryUsage: 1_000,
    maintenance: [],
    ...fields,
  };
}

/** A node with GPUs of its own; their pool has the name of the node. */
export function gpuNode(name: string, fields: Partial<Candidate> = {}): Candidate {
  return node(name, {
    gpus: { pool: name, models: ['NVIDIA-A100-SXM4-40GB'] },
    resource: 'nvidia.com/gpu',
    ...fields,
  });
}

/**
 * A pool of GPUs.
 * @param uses number of used GPUs, by UID of the GPUInfo; the empty key stands for pods without a GPUInfo
 */
export function pool(id: string, total: number, uses: Readonly<Record<string, number>> = {}): GpuPool {
  return {
    id,
    total,
    uses: Object.entries(uses).map(([holder, gpus]) => ({ holder: holder || undefined, gpus })),
  };
}

export function facts(
  candidates: readonly Candidate[],
  pools: readonly GpuPool[] = [],
  fields: Partial<Facts> = {},
): Facts {
  return {
    version: 1,
    candidates: candidates.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    pools: new Map(pools.map((each) => [each.id, each])),
    jobs: new Map(),
    warnings: [],
    isSimulated: false,
    ...fields,
  };
}

/** A job that consists of pods without a controller. @param boundTo nodes that its pods are bound to */
export function job(
  state: JobFacts['state'],
  boundTo: readonly string[] = [],
  fields: Partial<JobFacts> = {},
): JobFacts {
  return { state, boundTo, pinnedTo: [], mayRestart: false, ...fields };
}

/** A request for one GPU for 100 hours. Its name equals its UID; `age` is its age in seconds at `NOW`. */
export function request(uid: string, fields: Partial<Request> & { readonly age?: number } = {}): Request {
  const { age = 0, ...rest } = fields;
  return {
    uid,
    key: `ml/${uid}`,
    generation: 1,
    hours: 100,
    gpus: 1,
    model: undefined,
    nodeSelector: {},
    policy: 'LeastCpu',
    mayReserve: true,
    isDeleting: false,
    createdAt: new Date(NOW - age * 1_000).toISOString(),
    ...rest,
  };
}
