import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Assets } from '../assets/assets.ts';
import { condition } from '../kubernetes/api.ts';
import type { Cluster } from '../kubernetes/cluster.ts';
import { healthy } from '../process/healthy.ts';
import { Part } from '../process/part.ts';
import { freePort } from '../process/ports.ts';
import { RunSupervisor } from '../process/run-supervisor.ts';

/**
 * Names of the stage files in `packages/testbed/stages`, which define the kinds that kwok simulates in addition to
 * Nodes and Pods.
 */
export type Stages = 'virt-handler' | 'kubevirt-imitation';

const NODE_ANNOTATION = { 'kwok.x-k8s.io/node': 'fake' };

/**
 * Starts kwok. It simulates the kubelets of Nodes that have its annotation, the Pods on these Nodes, and the kinds that
 * the stages define. The stages are passed in kwok's configuration file. If they were objects in the cluster, kwok
 * would miss some of them in about one start out of five.
 */
export async function startKwok(cluster: Cluster, stages: readonly Stages[] = []): Promise<Part> {
  const port = await freePort();
  const texts = await Promise.all(
    stages.map((name) => readFile(new URL(`../../stages/${name}.yaml`, import.meta.url), 'utf8')),
  );
  const config = join(await RunSupervisor.shared.folder('kwok-config'), 'kwok.yaml');
  const options = {
    apiVersion: 'config.kwok.x-k8s.io/v1alpha1',
    kind: 'KwokConfiguration',
    options: {
      manageAllNodes: false,
      manageNodesWithAnnotationSelector: 'kwok.x-k8s.io/node=fake',
      nodeLeaseDurationSeconds: 10,
      cidr: '10.244.0.0/16',
    },
  };
  await writeFile(config, [JSON.stringify(options), ...texts].join('\n---\n'));
  return Part.start({
    name: 'kwok',
    command: await new Assets().path('kwok'),
    args: [
      `--kubeconfig=${cluster.kubeconfig}`,
      `--config=${config}`,
      '--node-ip=127.0.0.1',
      `--server-address=127.0.0.1:${port}`,
    ],
    ready: () => healthy(`http://127.0.0.1:${port}/readyz`),
  });
}

export interface NodeOptions {
  readonly labels?: Readonly<Record<string, string>>;
  /** Capacity in addition to CPU, memory, pods and ephemeral storage. */
  readonly resources?: Readonly<Record<string, string>>;
}

/** Creates a Node that kwok manages, and waits until it is Ready. */
export async function createNode(
  cluster: Cluster,
  name: string,
  { labels, resources }: NodeOptions = {},
): Promise<void> {
  const capacity = { cpu: '64', memory: '256Gi', pods: '110', 'ephemeral-storage': '500Gi', ...resources };
  const basic = {
    'kubernetes.io/hostname': name,
    'kubernetes.io/arch': 'amd64',
    'kubernetes.io/os': 'linux',
  };
  await cluster.api.create('/api/v1/nodes', {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, annotations: NODE_ANNOTATION, labels: { ...basic, ...labels } },
    status: { capacity, allocatable: capacity },
  });
  await cluster.waitFor(`/api/v1/nodes/${name}`, (node) => condition(node, 'Ready') === 'True');
}
