import { readFile } from 'node:fs/promises';
import {
  type ControlPlane,
  freePort,
  installOperator,
  type OperatorOptions,
  operatorSays,
  type Part,
  startControlPlane,
  startKubeVirt,
  startOperator,
} from '@vmwright/testbed';

export const SYSTEM = 'vmwright-system';

/** A control plane with the operator's CRDs, roles and webhooks, and a running operator. */
export interface Installed {
  readonly controlPlane: ControlPlane;
  readonly operator: Part;
  /** Returns whether a replica leads, according to its own metrics. */
  leads(replica: Part): Promise<boolean>;
  /** Returns the metrics of a replica. */
  metrics(replica: Part): Promise<string>;
  /** Returns the output of `vmwright orphans`. */
  orphans(): Promise<string>;
  /** Starts another replica. Webhook requests go to the first one. */
  replica(): Promise<Part>;
  kubectl(...args: readonly string[]): Promise<string>;
  /** Applies a manifest that must be rejected, and returns the error. */
  refused(manifest: string): Promise<string>;
}

/**
 * Starts a control plane, installs the operator and starts it. The stack disposes of all of them.
 * @param options backends, flags and variables of the operator; the caller disposes of the backends. KubeVirt is started here
 */
export async function installed(
  stack: AsyncDisposableStack,
  options: Pick<OperatorOptions, 'cloud' | 'vcsim' | 'kubevirt' | 'args' | 'env'>,
): Promise<Installed> {
  const replicas = new AsyncDisposableStack();
  const { kubevirt = false } = options;
  const controlPlane = stack.use(await startControlPlane({ scheduler: kubevirt }));
  const { cluster } = controlPlane;
  if (kubevirt) stack.use(await startKubeVirt(controlPlane));
  const webhookPort = await freePort();
  await cluster.kubectl(['create', 'namespace', SYSTEM]);
  await installOperator(cluster, SYSTEM, webhookPort);
  const start = (more: object) => startOperator({ cluster, namespace: SYSTEM, ...options, ...more });
  stack.use(replicas); // disposed of before the control plane
  const operator = replicas.use(await start({ webhookPort }));
  const metrics = async (replica: Part) => {
    const port = /"msg":"serving metrics, health[^\n]*"port":(\d+)/i.exec(
      await readFile(replica.log, 'utf8'),
    )?.[1];
    return (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  };
  return {
    controlPlane,
    operator,
    metrics,
    leads: async (replica) =>
      /^leader_election_master_status\{name="vmwright"\} 1$/m.test(await metrics(replica)),
    orphans: () => operatorSays({ cluster, namespace: SYSTEM, ...options }, 'orphans'),
    replica: async () => replicas.use(await start({})),
    kubectl: async (...args) => (await cluster.kubectl(args)).stdout,
    refused: (manifest) =>
      cluster.apply(manifest).then(
        () => 'accepted',
        (error: unknown) => String(error),
      ),
  };
}
