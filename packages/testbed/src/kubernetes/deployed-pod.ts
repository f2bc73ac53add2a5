import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RunSupervisor } from '../process/run-supervisor.ts';
import { ApiError, field, type KubeObject } from './api.ts';
import type { Cluster } from './cluster.ts';

/** Command and environment of a container in a Deployment's pod, to run the container as a local process. */
interface DeployedPod {
  /** Command and arguments of the container. Paths of mounted volumes are replaced by local folders. */
  readonly command: readonly string[];
  /** Variables of the container, and KUBECONFIG with the token of the pod's service account. */
  readonly env: Readonly<Record<string, string>>;
}

/**
 * Reads the pod template of a Deployment. Copies the ConfigMaps and Secrets that are mounted in it to local folders.
 */
export async function deployedPod(cluster: Cluster, namespace: string, name: string): Promise<DeployedPod> {
  const deployment = await cluster.api.get(`/apis/apps/v1/namespaces/${namespace}/deployments/${name}`);
  const pod = field(deployment, 'spec', 'template', 'spec');
  const container = field(pod, 'containers', '0');
  const mounts = await mountVolumes(cluster, namespace, pod, container);
  const account = { namespace, name: String(field(pod, 'serviceAccountName')) };
  const local = (value: unknown) => localPath(mounts, String(value));
  return {
    command: [...listOf(field(container, 'command')), ...listOf(field(container, 'args'))].map(local),
    env: { ...variablesOf(container, namespace, local), KUBECONFIG: await cluster.kubeconfigFor(account) },
  };
}

interface Mount {
  readonly path: string;
  readonly folder: string;
}

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
  // The mount path /tmp is not replaced. Local folders may be below /tmp, so a path that was already replaced would be
  // replaced again.
  return mounts.filter(({ path }) => path !== '/tmp');
}

/** Replaces mount paths by local folders. Only whole segments match, so /etc/ssvirt-database is not /etc/ssvirt. */
function localPath(mounts: readonly Mount[], text: string): string {
  const replace = (result: string, { path, folder }: Mount) => result.replaceAll(`${path}/`, `${folder}/`);
  return mounts.reduce(replace, `${text}/`).slice(0, -1);
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

/**
 * Returns the environment variables of a container. A variable without a value must refer to the namespace of the pod.
 */
function variablesOf(
  container: unknown,
  namespace: string,
  local: (value: unknown) => string,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    listOf(field(container, 'env')).map((each) => {
      const value = field(each, 'value');
      return [String(field(each, 'name')), value === undefined ? namespace : local(value)];
    }),
  );
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
