import { install } from '../../packages/operator/test/with-vcenter.ts';
import type { Row } from '../bar.ts';
import { bare } from './bare.ts';
import { client } from './client.ts';
import { CLONE_MS, LIMIT } from './floor.ts';
import { beside, many, replicas } from './groups.ts';
import { clear, race } from './race.ts';

/**
 * Compares our vSphere client with govmomi. Compares the VmGroup controller with the minimum time for its clones
 * (`floorOf`), because no comparable program exists. The operator runs as a separate process with all features enabled,
 * under its own service account.
 */
export async function* vsphere(part?: string): AsyncGenerator<Row> {
  if (part === undefined || part === client.name) yield* client();
  for (const measure of [replicas, many, beside, bare]) {
    if (part !== undefined && part !== measure.name) continue;
    await using bench = await install({ args: [`--vsphere-concurrency=${LIMIT}`] });
    await bench.vcsim.control.delay({ tasks: { CloneVm: CLONE_MS } });
    // Warm-up: makes sure that the operator leads and is connected to vCenter.
    await race(bench, { first: 1 });
    await clear(bench, ['first']);
    yield* measure(bench);
  }
}
