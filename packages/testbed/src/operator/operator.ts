import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Cloud } from '../cloud/cloud.ts';
import type { Cluster } from '../kubernetes/cluster.ts';
import { healthy } from '../process/healthy.ts';
import { Part } from '../process/part.ts';
import { freePort } from '../process/ports.ts';
import { programOf } from '../process/program.ts';

export interface OperatorOptions {
  readonly cluster: Cluster;
  readonly cloud: Pick<Cloud, 'url' | 'apiKey'>;
  /** In which its leases and its service account are. */
  readonly namespace: string;
  /** More flags. */
  readonly args?: readonly string[];
  /** Of its webhooks: replicas are asked one at a time, so only one of several has it. @default a free one */
  readonly webhookPort?: number;
}

/** What is applied for an operator that runs beside the cluster: kinds, roles, webhooks. */
export async function installOperator(
  cluster: Cluster,
  namespace: string,
  webhookPort: number,
): Promise<void> {
  const url = `https://127.0.0.1:${webhookPort}`;
  const { command, args } = programOf(
    'operator',
    'manifests',
    `--namespace=${namespace}`,
    `--webhook-url=${url}`,
  );
  const { stdout } = await promisify(execFile)(command, args);
  await cluster.apply(stdout);
  await cluster.kubectl(['wait', '--for=condition=Established', 'crd/vms.samplecontroller.k8s.io']);
}

/** The operator as a process of its own, under its own service account. */
export async function startOperator(options: OperatorOptions): Promise<Part> {
  const { cluster, cloud, namespace, args = [], webhookPort = await freePort() } = options;
  const statusPort = await freePort();
  const flags = [
    `--namespace=${namespace}`,
    `--status-address=127.0.0.1:${statusPort}`,
    `--webhook-port=${webhookPort}`,
    `--webhook-url=https://127.0.0.1:${webhookPort}`,
    ...args,
  ];
  return Part.start({
    name: 'operator',
    ...programOf('operator', 'run', ...flags),
    env: {
      KUBECONFIG: await cluster.kubeconfigFor({ namespace, name: 'vmwright' }),
      CLOUD_URL: cloud.url,
      CLOUD_API_KEY: cloud.apiKey,
    },
    ready: () => healthy(`http://127.0.0.1:${statusPort}/readyz`),
    stopGraceMs: 40_000,
  });
}
