import { nodeWorld } from '@vmwright/runtime';
import { TEMPLATE, type WithVcenter } from '../../packages/operator/test/with-vcenter.ts';
import type { Row } from '../bar.ts';
import { floorOf, LIMIT } from './floor.ts';

const MACHINES = 30;

/** Clones machines without a controller, to measure how much longer vcsim itself takes than the minimum (`floorOf`). */
export async function* bare({ vcenter }: WithVcenter): AsyncGenerator<Row> {
  const { lookup, machines, tasks } = vcenter;
  const datacenter = await lookup.datacenter();
  const target = {
    template: await lookup.template(datacenter, TEMPLATE),
    folder: datacenter.vmFolder,
    resourcePool: await lookup.resourcePool(datacenter),
    cpus: 2,
    memoryMb: 1_024,
    powerOn: true,
  };
  let next = 0;
  const clone = async () => {
    for (let i = next++; i < MACHINES; i = next++) {
      const task = await machines.clone({ ...target, name: `bare-${i}`, instanceUuid: nodeWorld.uuid() });
      await tasks.follow(task);
    }
  };
  const started = performance.now();
  await Promise.all(Array.from({ length: LIMIT }, clone));
  const ours = (performance.now() - started) / 1000;
  yield { name: `${MACHINES} bare clones, ${LIMIT} at a time (s)`, ours, theirs: floorOf(MACHINES) };
}
