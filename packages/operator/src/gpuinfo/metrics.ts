import type { Registry } from '@vmwright/runtime';
import type { Allocations } from './allocations.ts';

/**
 * Declares the metrics of GPUs and reservations. They are computed at each scrape; NaN on replicas that do not lead.
 * @param isLeading whether this replica leads now
 */
export function gpuMetrics(
  registry: Registry,
  allocations: Pick<Allocations, 'latest'>,
  isLeading: () => boolean,
): void {
  const reservations = registry.gauge({
    name: 'vmwright_gpu_reservations',
    help: 'Number of active reservations; NaN on replicas that do not lead',
  });
  const gpus = registry.gauge({
    name: 'vmwright_gpus',
    help: 'GPUs of all nodes by state: total, and free (neither reserved nor in use); NaN on replicas that do not lead',
    labels: ['state'],
  });
  registry.beforeText(() => {
    const { allocation } = (isLeading() ? allocations.latest : undefined) ?? {}; // a former leader keeps its last one
    const { total, free } = allocation?.occupancy.totals() ?? { total: Number.NaN, free: Number.NaN };
    let live = 0;
    for (const { ended } of allocation?.reservations.values() ?? []) if (ended === undefined) live++;
    reservations.with({}).set(allocation === undefined ? Number.NaN : live);
    gpus.with({ state: 'total' }).set(total);
    gpus.with({ state: 'free' }).set(free);
  });
}
