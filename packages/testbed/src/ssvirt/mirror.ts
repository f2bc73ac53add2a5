import { fileURLToPath } from 'node:url';
import { CanarySearches } from '../canaries/searches.ts';
import type { Cluster } from '../kubernetes/cluster.ts';
import { deployedPod } from '../kubernetes/deployed-pod.ts';
import type { Postgres } from '../postgres/postgres.ts';
import { healthy } from '../process/healthy.ts';
import { Part } from '../process/part.ts';
import { freePort } from '../process/ports.ts';
import { programOf } from '../process/program.ts';
import { type Result, tryRun } from '../process/run.ts';

export interface MirrorOptions {
  readonly cluster: Cluster;
  readonly database: Pick<Postgres, 'url'>;
  /** Additional flags. */
  readonly args?: readonly string[];
  /** Additional environment variables. A KUBECONFIG here replaces the kubeconfig of the mirror's service account. */
  readonly env?: Readonly<Record<string, string>>;
  /** URL of the API server in the kubeconfig, for example a proxy's URL. @default the URL of the cluster */
  readonly server?: string;
  /** @default a free port */
  readonly statusPort?: number;
}

/** Namespace of the manifests in `config/ssvirt`. */
export const SSVIRT_NAMESPACE = 'ssvirt-system';
const ACCOUNT = { namespace: SSVIRT_NAMESPACE, name: 'ssvirt-vm-controller' };
const RBAC = fileURLToPath(new URL('../../../../config/ssvirt/rbac.yaml', import.meta.url));

/** Applies the service account and the roles of the mirror. */
export async function installMirror(cluster: Cluster): Promise<void> {
  await cluster.apply(
    JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: SSVIRT_NAMESPACE } }),
  );
  await cluster.apply([RBAC]);
}

/** A running `ssvirt-vm-controller`. */
export interface MirrorPart extends AsyncDisposable {
  readonly part: Part;
  /** Address of the mirror's status server. */
  readonly url: string;
}

/** Starts `ssvirt-vm-controller` as a separate process with its own service account. */
export async function startMirror(options: MirrorOptions): Promise<MirrorPart> {
  const { args = [], statusPort = await freePort() } = options;
  return startProgram(args, await environment(options), statusPort);
}

/**
 * Starts a replica of the Deployment `ssvirt-vm-controller` as a local process, because no kubelet runs its pods. The
 * process gets the container's arguments, variables and mounted files, and the token of its service account.
 */
export async function startDeployedMirror(cluster: Cluster): Promise<MirrorPart> {
  const { command, env } = await deployedPod(cluster, SSVIRT_NAMESPACE, ACCOUNT.name);
  const [, ...args] = command; // the first word is the path of the program in the image
  return startProgram(args, env, await freePort());
}

async function startProgram(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  statusPort: number,
): Promise<MirrorPart> {
  const url = `http://127.0.0.1:${statusPort}`;
  const part = await Part.start({
    name: 'ssvirt-vm-controller',
    ...programOf('mirror', ...args),
    env: { ...env, CONTROLLER_METRICS_ADDR: `127.0.0.1:${statusPort}` },
    ready: () => healthy(`${url}/readyz`),
    stopGraceMs: 40_000,
  });
  return { part, url, [Symbol.asyncDispose]: () => part[Symbol.asyncDispose]() };
}

/** Runs `ssvirt-vm-controller verify` with the same settings as `startMirror`. */
export async function verifyMirror(options: MirrorOptions): Promise<Result> {
  const { command, args } = programOf('mirror', 'verify', ...(options.args ?? []));
  const result = await tryRun(command, args, { env: { ...process.env, ...(await environment(options)) } });
  CanarySearches.current?.text('the output of ssvirt-vm-controller verify', result.stdout + result.stderr);
  return result;
}

async function environment({ cluster, database, env = {}, server }: MirrorOptions) {
  return {
    KUBECONFIG: env.KUBECONFIG ?? (await cluster.kubeconfigFor(ACCOUNT, server)),
    DATABASE_URL: database.url,
    ...env,
  };
}
