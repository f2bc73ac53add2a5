import { mkdir, writeFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { TestbedError } from '../errors.ts';
import { ApiError, field, type KubeObject } from '../kubernetes/api.ts';
import type { Cluster } from '../kubernetes/cluster.ts';
import { healthy } from '../process/healthy.ts';
import { Part } from '../process/part.ts';
import { freePort } from '../process/ports.ts';
import { programOf } from '../process/program.ts';
import { RunSupervisor } from '../process/run-supervisor.ts';

/**
 * Starts a replica of the operator's Deployment as a local process, because no kubelet runs its pods: with the container's arguments and
 * variables, the ConfigMaps and Secrets that it mounts, and the token of its service account. An EndpointSlice of the Service
 * `vmwright-webhook` points at it, so the control plane must route to endpoints (`ControlPlaneOptions.endpointRouting`).
 * @param args additional flags
 */
export async function startDeployedOperator(
  cluster: Cluster,
  namespace: string,
  args: readonly string[] = [],
): Promise<Part> {
  const deployment = await cluster.api.get(`/apis/apps/v1/namespaces/${namespace}/deployments/vmwright`);
  const pod = field(deployment, 'spec', 'template', 'spec');
  const container = field(pod, 'containers', '0');
  const mounts = await mountVolumes(cluster, namespace, pod, container);
  const local = (text: string) =>
    mounts.reduce((result, { path, folder }) => result.replaceAll(path, folder), text);
  const [statusPort, webhookPort] = [await freePort(), await freePort()];
  await routeWebhooks(cluster, namespace, webhookPort);
  const [command = '', ...rest] = textsOf(field(container, 'args')).map(local);
  const flags = [
    `--status-address=127.0.0.1:${statusPort}`,
    `--webhook-port=${webhookPort}`,
    '--metrics-bind-address=127.0.0.1:0',
  ];
  return Part.start({
    name: 'operator',
    ...programOf('operator', command, ...rest, ...flags, ...args),
    env: {
      ...variablesOf(container, namespace, local),
      KUBECONFIG: await cluster.kubeconfigFor({ namespace, name: String(field(pod, 'serviceAccountName')) }),
    },
    ready: () => healthy(`http://127.0.0.1:${statusPort}/readyz`),
    stopGraceMs: 40_000,
  });
}

interface Mount {
  readonly path: string;
  readonly folder: string;
}

/** Writes the content of mounted ConfigMaps and Secrets to local folders. */
async function mountVolumes(
  cluster: Cluster,
  namespace: string,
  pod: unknown,
  container: unknown,
): Promise<readonly Mount[]> {
  const root = await RunSupervisor.shared.folder('volumes');
  const mounts: Mount[] = [];
  for (const mount of listOf(field(container, 'volumeMounts'))) {
    const name = String(field(mount, 'name'));
    const volume = listOf(field(pod, 'volumes')).find((each) => field(each, 'name') === name);
    const folder = join(root, name);
    await mkdir(folder);
    for (const [file, content] of Object.entries(await contentOf(cluster, namespace, volume)))
      await writeFile(join(folder, file), content, { mode: 0o600 });
    mounts.push({ path: String(field(mount, 'mountPath')), folder });
  }
  // The path /etc/vmwright/webhook begins with no other one, but /tmp could be part of a folder that was inserted before.
  return mounts.filter(({ path }) => path !== '/tmp');
}

async function contentOf(
  cluster: Cluster,
  namespace: string,
  volume: unknown,
): Promise<Readonly<Record<string, string | Buffer>>> {
  const [map, secret] = [field(volume, 'configMap', 'name'), field(volume, 'secret', 'secretName')];
  const core = `/api/v1/namespaces/${namespace}`;
  if (map !== undefined) return dataOf(await cluster.api.get(`${core}/configmaps/${map}`));
  if (secret === undefined) return {};
  try {
    const data = Object.entries(dataOf(await cluster.api.get(`${core}/secrets/${secret}`)));
    return Object.fromEntries(data.map(([key, value]) => [key, Buffer.from(value, 'base64')]));
  } catch (error) {
    const isOptional = field(volume, 'secret', 'optional') === true;
    if (isOptional && error instanceof ApiError && error.status === 404) return {};
    throw error;
  }
}

function dataOf({ data }: KubeObject): Readonly<Record<string, string>> {
  const entries = typeof data === 'object' && data !== null ? Object.entries(data) : [];
  return Object.fromEntries(entries.map(([key, value]) => [key, String(value)]));
}

/** Returns the variables of a container. The only field of a pod that they may refer to is its namespace. */
function variablesOf(
  container: unknown,
  namespace: string,
  local: (text: string) => string,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    listOf(field(container, 'env')).map((each) => {
      const value = field(each, 'value');
      return [String(field(each, 'name')), value === undefined ? namespace : local(String(value))];
    }),
  );
}

/** Makes the port of this machine the only endpoint of the webhook Service. */
async function routeWebhooks(cluster: Cluster, namespace: string, port: number): Promise<void> {
  const slice = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: 'local-process',
      namespace,
      labels: {
        'kubernetes.io/service-name': 'vmwright-webhook',
        'endpointslice.kubernetes.io/managed-by': 'testbed.vmwright.dev', // the controller leaves it alone
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
      'this machine has no network interface except loopback, and endpoints of a Service cannot have its addresses; add one (ip link add dummy0 type dummy, ip addr add 10.254.0.1/32 dev dummy0, ip link set dummy0 up)',
    );
  return found.address;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function textsOf(value: unknown): readonly string[] {
  return listOf(value).map(String);
}
