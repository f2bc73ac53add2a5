import { setTimeout as sleep } from 'node:timers/promises';
import { GPUInfo } from '@vmwright/operator';
import type { Client } from '@vmwright/runtime';
import { freePort, installOperator, startControlPlane, startOperator } from '@vmwright/testbed';
import { Node } from '../../packages/operator/src/gpuinfo/kinds.ts';
import type { Row } from '../bar.ts';
import { shippedOperator } from '../operator/shipped.ts';
import { cpuOf } from '../process.ts';
import { connect, createAll, NAMESPACE, untilAll } from '../runtime/objects.ts';
import { hasGpus, NODES, nodeName, REQUESTS, specOf } from './size.ts';

const SYSTEM = 'vmwright-system';
const WARM_UP = 20;
const CHANGES = 60;
/** Pause after each change, so that the operator processes every change separately. */
const PAUSE_MS = 400;
const IDLE_MS = 15_000;
const BAR_MS = 50;

/**
 * Measures the operator's CPU time per change of a node, with a real API server. No kubelet runs.
 * kube-controller-manager is killed, because it would mark nodes without a kubelet as not ready.
 */
export async function* changes(): AsyncGenerator<Row> {
  await using resources = new AsyncDisposableStack();
  const controlPlane = resources.use(await startControlPlane());
  const { cluster } = controlPlane;
  await cluster.kubectl(['create', 'namespace', SYSTEM]);
  const [webhookPort, statusPort] = [await freePort(), await freePort()];
  await installOperator(cluster, SYSTEM, webhookPort);
  await controlPlane.controllerManager.kill();
  const client = resources.use(await connect(cluster));
  await createNodes(client);
  await createAll(client, GPUInfo, REQUESTS, (index) => ({
    metadata: { namespace: NAMESPACE, name: `r-${index}` },
    spec: specOf(index),
  }));
  const operator = resources.use(
    await startOperator({
      cluster,
      namespace: SYSTEM,
      gpuinfo: true,
      webhookPort,
      statusPort,
      ...(await shippedOperator()),
      args: ['--leader-elect=false'], // off, because Lease renewals would count as writes
    }),
  );
  const writes = async () => writesIn(await (await fetch(`http://127.0.0.1:${statusPort}/metrics`)).text());
  await untilAll(client, GPUInfo, REQUESTS, ({ status }) => status?.phase !== undefined);

  const size = `${NODES} nodes × ${REQUESTS} requests`;
  const perChange = async (change: (index: number) => Promise<unknown>) => {
    for (let index = 0; index < WARM_UP; index++) await pausing(() => change(index));
    const [cpu, before] = [cpuOf(operator.pid), await writes()];
    for (let index = WARM_UP; index < WARM_UP + CHANGES; index++) await pausing(() => change(index));
    return {
      ms: ((cpuOf(operator.pid) - cpu) * 1_000) / CHANGES,
      writes: ((await writes()) - before) / CHANGES,
    };
  };
  // Changes a node label that no GPUInfo selects: all GPUInfos are evaluated again, and no status changes.
  const unrelated = await perChange((index) =>
    client.mergePatch(Node, { name: nodeName(index) }, { metadata: { labels: { touched: String(index) } } }),
  );
  yield { name: `${size}, no new answer: CPU per change (ms)`, ours: unrelated.ms, bar: { atMost: BAR_MS } };
  yield { name: `${size}, no new answer: writes per change`, ours: unrelated.writes, bar: { atMost: 0 } };
  const moved = await perChange(async (index) => cordon(client, await reservedNode(client, index)));
  yield {
    name: `${size}, reserved node cordoned: CPU per change (ms)`,
    ours: moved.ms,
    bar: { atMost: BAR_MS },
  };
  yield { name: `${size}, reserved node cordoned: writes per change`, ours: moved.writes };

  await sleep(IDLE_MS); // gives the operator time to write its last events, which follow seconds after their causes
  const [cpu, before] = [cpuOf(operator.pid), await writes()];
  await sleep(IDLE_MS);
  yield { name: `${size}, idle: writes`, ours: (await writes()) - before, bar: { atMost: 0 } };
  yield { name: `${size}, idle: CPU per second (ms)`, ours: ((cpuOf(operator.pid) - cpu) * 1e6) / IDLE_MS };
}

async function createNodes(client: Client): Promise<void> {
  await createAll(client, Node, NODES, (index) => {
    const capacity = { cpu: '64', memory: '256Gi', ...(hasGpus(index) && { 'nvidia.com/gpu': '1' }) };
    return {
      metadata: { name: nodeName(index), labels: { 'kubernetes.io/hostname': nodeName(index) } },
      status: {
        capacity,
        allocatable: capacity,
        conditions: [{ type: 'Ready', status: 'True', reason: 'Bench' }],
      },
    };
  });
  // The API server taints every new node as not ready. kube-controller-manager, which would remove the taint, is
  // killed, so the benchmark removes it.
  for (let index = 0; index < NODES; index++)
    await client.mergePatch(Node, { name: nodeName(index) }, { spec: { taints: null } });
}

/** Returns the node that is reserved for a GPUInfo that requires a GPU. `index` selects the GPUInfo. */
async function reservedNode(client: Client, index: number): Promise<string> {
  const { status } = await client.get(GPUInfo, { namespace: NAMESPACE, name: `r-${10 * (index % 20) + 1}` });
  return status?.suitableNodeName ?? '';
}

function cordon(client: Client, name: string): Promise<unknown> {
  return client.mergePatch(Node, { name }, { spec: { unschedulable: true } });
}

async function pausing(change: () => Promise<unknown>): Promise<void> {
  await change();
  await sleep(PAUSE_MS);
}

function writesIn(metrics: string): number {
  const lines = metrics.matchAll(
    /^rest_client_requests_total\{[^}]*method="(?:POST|PUT|PATCH|DELETE)"[^}]*\} (\d+)$/gm,
  );
  return [...lines].reduce((sum, [, value]) => sum + Number(value), 0);
}
