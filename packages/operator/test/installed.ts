import { readFile } from 'node:fs/promises';
import {
  type ControlPlane,
  freePort,
  installOperator,
  type OperatorOptions,
  operatorSays,
  type Part,
  startControlPlane,
  startOperator,
} from '@vmwright/testbed';

export const SYSTEM = 'vmwright-system';

/** A cluster with the operator's kinds, roles and webhooks, and the operator. */
export interface Installed {
  readonly controlPlane: ControlPlane;
  readonly operator: Part;
  /** Whether this one leads, by its own metrics. */
  leads(replica: Part): Promise<boolean>;
  /** What it measures. */
  metrics(replica: Part): Promise<string>;
  /** What `vmwright orphans` prints. */
  orphans(): Promise<string>;
  /** Another replica; the webhooks are served by the first. */
  replica(): Promise<Part>;
  kubectl(...args: readonly string[]): Promise<string>;
  /** What `kubectl` says when it refuses. */
  refused(manifest: string): Promise<string>;
}

/** @param outside what it works with, and how it is told; made by who disposes of it */
export async function installed(
  stack: AsyncDisposableStack,
  outside: Pick<OperatorOptions, 'cloud' | 'vcsim' | 'args' | 'env'>,
): Promise<Installed> {
  const replicas = new AsyncDisposableStack();
  const controlPlane = stack.use(await startControlPlane());
  const { cluster } = controlPlane;
  const webhookPort = await freePort();
  await cluster.kubectl(['create', 'namespace', SYSTEM]);
  await installOperator(cluster, SYSTEM, webhookPort);
  const start = (more: object) => startOperator({ cluster, namespace: SYSTEM, ...outside, ...more });
  stack.use(replicas); // goes before the cluster
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
    orphans: () => operatorSays({ cluster, namespace: SYSTEM, ...outside }, 'orphans'),
    replica: async () => replicas.use(await start({})),
    kubectl: async (...args) => (await cluster.kubectl(args)).stdout,
    refused: (manifest) =>
      cluster.apply(manifest).then(
        () => 'it was accepted',
        (error: unknown) => String(error),
      ),
  };
}
