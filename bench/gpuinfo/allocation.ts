import { allocate } from '../../packages/operator/src/gpuinfo/allocate.ts';
import type { Reservations } from '../../packages/operator/src/gpuinfo/allocation.ts';
import type { Candidate, Facts } from '../../packages/operator/src/gpuinfo/candidate.ts';
import { plan } from '../../packages/operator/src/gpuinfo/plan.ts';
import { requestOf } from '../../packages/operator/src/gpuinfo/request.ts';
import type { GPUInfo } from '../../packages/operator/src/gpuinfo/resource.ts';
import type { Row } from '../bar.ts';
import { hasGpus, NODES, nodeName, PENDING, pendingSpecOf, REQUESTS, specOf } from './size.ts';

const NOW = Date.parse('2026-01-05T08:00:00Z');
const HORIZON_MS = 8_760 * 3_600_000;
/** Number of changes that run before the measurement starts, to let V8 compile the code first. */
const WARM_UP = 100;
const CHANGES = 500;

/**
 * Measures the CPU time that the operator needs after a change of one node: it allocates all requests again, and plans
 * the statuses of the requests that stay pending.
 */
export async function* allocation(): AsyncGenerator<Row> {
  yield {
    name: `${NODES} nodes × ${REQUESTS} requests, allocation: CPU per change (ms)`,
    ours: cpuPerChange(REQUESTS, specOf, CHANGES),
    bar: { atMost: 50 },
  };
  yield {
    name: `${NODES} nodes × ${PENDING} pending requests, allocation and statuses: CPU per change (ms)`,
    ours: cpuPerChange(PENDING, pendingSpecOf, CHANGES / 10),
    bar: { atMost: 100 },
  };
}

/** Returns the CPU time per change in milliseconds. */
function cpuPerChange(count: number, spec: (index: number) => GPUInfo['spec'], changes: number): number {
  const infos = Array.from(
    { length: count },
    (_, index): GPUInfo => ({
      metadata: {
        namespace: 'default',
        name: `r-${index}`,
        uid: `uid-${index}`,
        generation: 1,
        creationTimestamp: new Date(NOW + index * 1_000).toISOString(),
      },
      spec: spec(index),
    }),
  );
  const requests = infos.map(requestOf);
  let reservations: Reservations = new Map();
  let started = process.cpuUsage();
  const warmUp = Math.min(WARM_UP, changes);
  for (let change = 0; change < warmUp + changes; change++) {
    if (change === warmUp) started = process.cpuUsage();
    const facts = factsWithout(change % NODES);
    const input = { requests, facts, reservations, horizonMs: HORIZON_MS };
    const allocated = allocate(input, NOW + change);
    reservations = allocated.reservations;
    for (const info of infos) {
      const verdict = allocated.verdicts.get(info.metadata.uid ?? '');
      if (verdict !== undefined && verdict.reservation === undefined)
        plan(info, { verdict, facts, allocation: allocated, horizonMs: HORIZON_MS }, NOW + change);
    }
  }
  const { user, system } = process.cpuUsage(started);
  return (user + system) / 1_000 / changes;
}

const CANDIDATES = Array.from({ length: NODES }, (_, index): Candidate => {
  const name = nodeName(index);
  return {
    name,
    host: name,
    labels: {},
    blocker: undefined,
    maintenance: [],
    gpus: hasGpus(index) ? { pool: name, models: ['NVIDIA-A100-SXM4-40GB'] } : undefined,
    cpuUsage: index % 97,
    memoryUsage: index % 89,
  };
});

/** Returns the state of the cluster (`Facts`) in which the node with this index is cordoned. */
function factsWithout(index: number): Facts {
  const name = nodeName(index);
  const blocker = { reason: 'Unschedulable', message: 'cordoned' } as const;
  return {
    version: index,
    candidates: CANDIDATES.map((each) => (each.name === name ? { ...each, blocker } : each)),
    pools: new Map(
      CANDIDATES.flatMap(({ gpus }) => (gpus ? [[gpus.pool, { id: gpus.pool, total: 1, uses: [] }]] : [])),
    ),
    jobs: new Map(),
    warnings: [],
    isSimulated: false,
  };
}
