import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { CanarySearches } from '../canaries/searches.ts';
import type { Cloud } from '../cloud/cloud.ts';
import type { Cluster } from '../kubernetes/cluster.ts';
import { healthy } from '../process/healthy.ts';
import { Part } from '../process/part.ts';
import { freePort } from '../process/ports.ts';
import { programOf } from '../process/program.ts';
import type { Vcsim } from '../vcsim/vcsim.ts';

export interface OperatorOptions {
  readonly cluster: Cluster;
  /** The cloud of the VM controller. Without a cloud, this controller is disabled. */
  readonly cloud?: Pick<Cloud, 'url' | 'apiKey'>;
  /**
   * The vCenter of the VmGroup controller. The GPUInfo controller uses the same vCenter to look up the machines and
   * hosts of nodes. Without a vCenter, the VmGroup controller is disabled.
   */
  readonly vcsim?: Pick<Vcsim, 'host' | 'username' | 'password' | 'caFile'>;
  /** Whether the controllers of VirtualMachine and VMDiskImage run. The cluster must have KubeVirt. @default false */
  readonly kubevirt?: boolean;
  /** Whether the controller of GPUInfo runs. @default false */
  readonly gpuinfo?: boolean;
  /** Namespace of the operator's leases and service account. */
  readonly namespace: string;
  /** Command that runs the operator, without the operator's arguments. @default the sources of this repository */
  readonly command?: readonly string[];
  /** Additional flags. */
  readonly args?: readonly string[];
  /** Additional environment variables. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * Port on which the operator serves its webhooks. The webhook configurations contain only one address. If several
   * replicas run, only one of them can use this port.
   * @default a free port
   */
  readonly webhookPort?: number;
  /** Port for metrics and health checks. @default a free port */
  readonly statusPort?: number;
}

/**
 * Applies the CRDs, roles and webhooks for an operator that runs outside the cluster.
 * @param namespaces existing namespaces that the operator watches, the same as in its `--namespaces`. @default all
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
  const crds = [
    'crd/vms.samplecontroller.k8s.io',
    'crd/vmgroups.vm.codeconnect.vmworld.com',
    'crd/virtualmachines.pelotech.ot',
    'crd/vmdiskimages.crd.pelotech.ot',
    'crd/gpuinfoes.topology.corinternal.com',
  ];
  await cluster.kubectl(['wait', '--for=condition=Established', ...crds]);
}

/** Lets VirtualMachines of all namespaces use and create the images that the samples of `config/samples` refer to. */
const IMAGE_ACCESS = ['--image-namespaces=vmdi-farm', '--image-creation-namespaces=vmdi-farm'];

/** Starts the operator as a separate process with its own service account. */
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

/** Runs a one-shot command of the operator with the same settings as `startOperator`. @returns its standard output */
export async function operatorSays(options: OperatorOptions, command: 'orphans'): Promise<string> {
  const { command: program, args, env } = await operatorCommand(options, command);
  const { stdout, stderr } = await promisify(execFile)(program, args, { env });
  CanarySearches.current?.text(`the output of vmwright ${command}`, stdout + stderr);
  return stdout;
}

async function operatorCommand(options: OperatorOptions, command: string, ...flags: readonly string[]) {
  const { cluster, cloud, vcsim, kubevirt, gpuinfo, namespace, args = [], env = {} } = options;
  const [program, ...first] = options.command ?? [];
  const controllers = [
    ...(cloud ? ['vm'] : []),
    ...(vcsim ? ['vmgroup'] : []),
    ...(kubevirt ? ['kubevirt'] : []),
    ...(gpuinfo ? ['gpuinfo'] : []),
  ];
  const common = [
    `--controllers=${controllers.join()}`,
    `--namespace=${namespace}`,
    ...(kubevirt ? IMAGE_ACCESS : []),
  ];
  const rest = [command, ...common, ...flags, ...args];
  return {
    ...(program === undefined
      ? programOf('operator', ...rest)
      : { command: program, args: [...first, ...rest], isOurs: true }),
    env: {
      KUBECONFIG: await cluster.kubeconfigFor({ namespace, name: 'vmwright' }),
      ...(cloud && { CLOUD_URL: cloud.url, CLOUD_API_KEY: cloud.apiKey }),
      ...(vcsim && {
        VC_HOST: vcsim.host,
        VC_USER: vcsim.username,
        VC_PASS: vcsim.password,
        VC_CA: vcsim.caFile,
      }),
      ...env,
    },
  };
}
