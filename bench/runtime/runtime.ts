import { startControlPlane } from '@vmwright/testbed';
import type { Row } from '../bar.ts';
import { failOver } from './fail-over.ts';
import { flood, latency } from './latency.ts';
import { memory } from './memory.ts';
import { build } from './programs.ts';
import { queue } from './queue.ts';
import { rest } from './rest.ts';
import { throughput } from './throughput.ts';

/**
 * Compares our runtime with controller-runtime on the same API server in the same run, one program at a time.
 * kube-controller-manager is killed first, because it watches the same objects and would distort the measurements.
 */
export async function* runtime(part?: string): AsyncGenerator<Row> {
  yield queue();
  const programs = await build();
  for (const measure of [throughput, latency, flood, rest, failOver, memory]) {
    if (part !== undefined && part !== measure.name) continue;
    await using controlPlane = await startControlPlane();
    await controlPlane.controllerManager.kill();
    yield* measure({ cluster: controlPlane.cluster, programs });
  }
}
