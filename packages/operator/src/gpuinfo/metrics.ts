import type { Registry } from '@vmwright/runtime';
import type { Allocations } from './allocations.ts';

/**
 * Declares the metrics of GPUs and reservations. Their values are computed at each scrape. The values
 * are NaN on replicas that do not lead.
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
  const unwatched = registry.gauge({
    name: 'vmwright_gpu_unwatched_reservations',
    help: 'Active reservations of GPUInfos in namespaces that are not watched (--namespaces), by state of the GPUInfo: Exists, or Unreadable (the operator cannot read the GPUInfo); NaN on replicas that do not lead',
    labels: ['object'],
  });
  registry.beforeText(() => {
    // A former leader still has its last allocation, which must not be reported.
    const { allocation, unwatched: outside = [] } = (isLeading() ? allocations.latest : undefined) ?? {};
    const { total, free } = allocation?.occupancy.totals() ?? { total: Number.NaN, free: Number.NaN };
    let live = 0;
    for (const { ended } of allocation?.reservations.values() ?? []) if (ended === undefined) live++;
    reservations.with({}).set(allocation === undefined ? Number.NaN : live);
    gpus.with({ state: 'total' }).set(total);
    gpus.with({ state: 'free' }).set(free);
    for (const object of ['Exists', 'Unreadable']) {
      const { length } = outside.filter((each) => each.object === object);
      unwatched.with({ object }).set(allocation === undefined ? Number.NaN : length);
    }
  });
}
