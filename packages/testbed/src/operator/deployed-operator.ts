import { networkInterfaces } from 'node:os';
import { TestbedError } from '../errors.ts';
import type { Cluster } from '../kubernetes/cluster.ts';
import { deployedPod } from '../kubernetes/deployed-pod.ts';
import { healthy } from '../process/healthy.ts';
import { Part } from '../process/part.ts';
import { freePort } from '../process/ports.ts';
import { programOf } from '../process/program.ts';

/**
 * Starts a replica of the operator's Deployment as a local process, because no kubelet runs its pods. The process gets
 * the container's arguments, variables and mounted files, and the token of its service account. An EndpointSlice of the
 * Service `vmwright-webhook` points at the process. The control plane needs the option `endpointRouting` to use it.
 * @param args additional flags
 */
export async function startDeployedOperator(
  cluster: Cluster,
  namespace: string,
  args: readonly string[] = [],
): Promise<Part> {
  const { command, env } = await deployedPod(cluster, namespace, 'vmwright');
  const [statusPort, webhookPort] = [await freePort(), await freePort()];
  await routeWebhooks(cluster, namespace, webhookPort);
  const flags = [
    `--status-address=127.0.0.1:${statusPort}`,
    `--webhook-port=${webhookPort}`,
    '--metrics-bind-address=127.0.0.1:0',
  ];
  return Part.start({
    name: 'operator',
    ...programOf('operator', ...command, ...flags, ...args),
    env,
    ready: () => healthy(`http://127.0.0.1:${statusPort}/readyz`),
    stopGraceMs: 40_000,
  });
}

/** Makes a port of this machine the only endpoint of the webhook Service. */
async function routeWebhooks(cluster: Cluster, namespace: string, port: number): Promise<void> {
  const slice = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: 'local-process',
      namespace,
      labels: {
        'kubernetes.io/service-name': 'vmwright-webhook',
        'endpointslice.kubernetes.io/managed-by': 'testbed.vmwright.dev', // so that the EndpointSlice controller ignores it
      },
    },
    addressType: 'IPv4',
    endpoints: [{ addresses: [ownAddress()], conditions: { ready: true } }],
    ports: [{ name: 'webhook', port, protocol: 'TCP' }],
  };
  await cluster.apply(JSON.stringify(slice));
}

/** Returns an address of this machine. Endpoints cannot have loopback addresses. */
function ownAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const found = all.find(({ family, internal }) => family === 'IPv4' && !internal);
  if (found === undefined)
    throw new TestbedError(
      'PART_NOT_READY',
      'this machine has no network interface except loopback, and endpoints of a Service cannot have loopback addresses; add an interface (ip link add dummy0 type dummy, ip addr add 10.254.0.1/32 dev dummy0, ip link set dummy0 up)',
    );
  return found.address;
}
