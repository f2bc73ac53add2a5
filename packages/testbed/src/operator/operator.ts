import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Cloud } from '../cloud/cloud.ts';
import type { Cluster } from '../kubernetes/cluster.ts';
import { healthy } from '../process/healthy.ts';
import { Part } from '../process/part.ts';
import { freePort } from '../process/ports.ts';
import { programOf } from '../process/program.ts';
import type { Vcsim } from '../vcsim/vcsim.ts';

export interface OperatorOptions {
  readonly cluster: Cluster;
  /** Without it, there is no controller of VMs. */
  readonly cloud?: Pick<Cloud, 'url' | 'apiKey'>;
  /** Without it, there is no controller of VmGroups. */
  readonly vcsim?: Pick<Vcsim, 'host' | 'username' | 'password' | 'caFile'>;
  /** In which its leases and its service account are. */
  readonly namespace: string;
  /** More flags. */
  readonly args?: readonly string[];
  /** More variables. */
  readonly env?: Readonly<Record<string, string>>;
  /** Of its webhooks: replicas are asked one at a time, so only one of several has it. @default a free one */
  readonly webhookPort?: number;
  /** Serves metrics and health checks. @default a free one */
  readonly statusPort?: number;
}

/**
 * What is applied for an operator that runs beside the cluster: kinds, roles, webhooks.
 * @param namespaces those it looks at, which must be there; its `--namespaces` wants the same. Default: all
 */
export async function installOperator(
  cluster: Cluster,
  namespace: string,
  webhookPort: number,
  namespaces: readonly string[] = [],
): Promise<void> {
  const url = `https://127.0.0.1:${webhookPort}`;
  const { command, args } = programOf(
    'operator',
    'manifests',
    `--namespace=${namespace}`,
    `--webhook-url=${url}`,
    ...(namespaces.length > 0 ? [`--namespaces=${namespaces.join()}`] : []),
  );
  const { stdout } = await promisify(execFile)(command, args);
  await cluster.apply(stdout);
  const crds = ['crd/vms.samplecontroller.k8s.io', 'crd/vmgroups.vm.codeconnect.vmworld.com'];
  await cluster.kubectl(['wait', '--for=condition=Established', ...crds]);
}

/** The operator as a process of its own, under its own service account. */
export async function startOperator(options: OperatorOptions): Promise<Part> {
  const { webhookPort = await freePort(), statusPort = await freePort() } = options;
  const flags = [
    `--status-address=127.0.0.1:${statusPort}`,
    `--webhook-port=${webhookPort}`,
    `--webhook-url=https://127.0.0.1:${webhookPort}`,
  ];
  return Part.start({
    name: 'operator',
    ...(await operatorCommand(options, 'run', ...flags)),
    ready: () => healthy(`http://127.0.0.1:${statusPort}/readyz`),
    stopGraceMs: 40_000,
  });
}

/** Runs a command of the operator that ends by itself, with the settings of one that runs. @returns what it prints */
export async function operatorSays(options: OperatorOptions, command: 'orphans'): Promise<string> {
  const { command: program, args, env } = await operatorCommand(options, command);
  return (await promisify(execFile)(program, args, { env })).stdout;
}

async function operatorCommand(options: OperatorOptions, command: string, ...flags: readonly string[]) {
  const { cluster, cloud, vcsim, namespace, args = [], env = {} } = options;
  const controllers = [...(cloud ? ['vm'] : []), ...(vcsim ? ['vmgroup'] : [])];
  const common = [`--controllers=${controllers.join()}`, `--namespace=${namespace}`];
  return {
    ...programOf('operator', command, ...common, ...flags, ...args),
    env: {
      KUBECONFIG: await cluster.kubeconfigFor({ namespace, name: 'vmwright' }),
      ...(cloud && { CLOUD_URL: cloud.url, CLOUD_API_KEY: cloud.apiKey }),
      ...(vcsim && {
        ...{ VC_HOST: vcsim.host, VC_USER: vcsim.username, VC_PASS: vcsim.password, VC_CA: vcsim.caFile },
      }),
      ...env,
    },
  };
}
