import { setTimeout as sleep } from 'node:timers/promises';
import { startCloud, startKwok, startVcsim } from '@vmwright/testbed';
import { type Installed, installed } from '../../packages/operator/test/installed.ts';
import { TEMPLATE } from '../../packages/operator/test/with-vcenter.ts';
import type { Row } from '../bar.ts';
import { connectionsOf, cpuOf, usageOf } from '../process.ts';
import { connect } from '../runtime/objects.ts';
import { COUNTS, createObjects } from './objects.ts';
import { shippedOperator } from './shipped.ts';

const SETTLE_MS = 40_000; // longer than the 30 s after which idle connections are closed
const OBSERVE_MS = 60_000;

/**
 * Measures memory, CPU time, writes and connections of the shipped operator while it is the leader, runs all
 * controllers and is idle: first without objects, then with objects.
 */
export async function* idle(): AsyncGenerator<Row> {
  await using resources = new AsyncDisposableStack();
  const cloud = resources.use(await startCloud());
  const inventory = { standaloneHosts: 0, vms: 2 };
  const vcsim = resources.use(await startVcsim({ inventory, templates: [TEMPLATE] }));
  const env = await installed(resources, {
    cloud,
    vcsim,
    kubevirt: true,
    gpuinfo: true,
    audit: true,
    ...(await shippedOperator()),
  });
  const { cluster } = env.controlPlane;
  resources.use(await startKwok(cluster));
  yield* observe(env, 'idle, no objects', true);

  const client = resources.use(await connect(cluster));
  const before = cpuOf(env.operator.pid);
  await createObjects(client, env);
  const { vms, groups, machines, images, infos } = COUNTS;
  const total = vms + groups + machines + images + infos;
  yield { name: `${total} objects created: CPU (s)`, ours: cpuOf(env.operator.pid) - before };
  yield { name: `${total} objects created: peak of memory (MB)`, ours: usageOf(env.operator.pid).peak };
  yield* observe(env, `idle, ${total} objects`, false);
}

/** @param bars whether limits apply to memory and connections: only in the measurement without objects */
async function* observe(
  { operator: { pid }, controlPlane }: Installed,
  state: string,
  bars: boolean,
): AsyncGenerator<Row> {
  await sleep(SETTLE_MS);
  const [cpu, before] = [cpuOf(pid), await writes(controlPlane)];
  await sleep(OBSERVE_MS);
  const after = await writes(controlPlane);
  const { rss, own } = usageOf(pid);
  const port = Number(new URL(controlPlane.cluster.access.server).port);
  yield { name: `${state}: memory (MB)`, ours: rss, ...(bars && { bar: { atMost: 110 } }) };
  yield { name: `${state}: memory without the executable (MB)`, ours: own };
  yield { name: `${state}: CPU per second (ms)`, ours: ((cpuOf(pid) - cpu) * 1e6) / OBSERVE_MS };
  yield {
    name: `${state}: connections to the API server`,
    ours: connectionsOf(pid, port),
    ...(bars && { bar: { atMost: 4 } }),
  };
  yield {
    name: `${state}: writes but for Leases and VM usage`,
    ours: after.other - before.other,
    bar: { atMost: 0 },
  };
  // The operator reads the CPU utilization of the VMs every 15 s (--vm-refresh), and writes it if it has changed.
  yield {
    name: `${state}: writes of VM usage (1/s)`,
    ours: ((after.vms - before.vms) * 1_000) / OBSERVE_MS,
  };
}

/** Counts the operator's writes: `vms` to the status of VMs, `other` to everything else. Ignores writes to Leases. */
async function writes({ audited }: Installed['controlPlane']) {
  const all = (await audited()).filter(({ verb, resource }) => !READS.has(verb) && resource !== 'leases');
  const vms = all.filter(({ resource }) => resource === 'vms/status').length;
  return { vms, other: all.length - vms };
}

const READS: ReadonlySet<string> = new Set(['get', 'list', 'watch']);
