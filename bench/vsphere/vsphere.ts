import { install } from '../../packages/operator/test/with-vcenter.ts';
import type { Row } from '../bar.ts';
import { bare } from './bare.ts';
import { client } from './client.ts';
import { CLONE_MS, LIMIT } from './floor.ts';
import { beside, many, replicas } from './groups.ts';
import { clear, race } from './race.ts';

/**
 * Our vSphere client against govmomi; and the controller of VmGroups, with clones that take as long as they would, against
 * what is possible at all: no other program's figures can be had here. The operator is a process of its own under its
 * own service account, with nothing switched off.
 */
export async function* vsphere(part?: string): AsyncGenerator<Row> {
  if (part === undefined || part === client.name) yield* client();
  for (const measure of [replicas, many, beside, bare]) {
    if (part !== undefined && part !== measure.name) continue;
    await using bench = await install({ args: [`--vsphere-concurrency=${LIMIT}`] });
    await bench.vcsim.control.delay({ tasks: { CloneVm: CLONE_MS } });
    // It leads and knows its vCenter, as one that has run for a while.
    await race(bench, { first: 1 });
    await clear(bench, ['first']);
    yield* measure(bench);
  }
}
