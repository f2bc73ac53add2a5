import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import {
  type Cloud,
  type Cluster,
  type ControlPlane,
  freePort,
  installOperator,
  type OperatorOptions,
  operatorSays,
  type Part,
  startControlPlane,
  startKubeVirt,
  startOperator,
  type Vcsim,
} from '@vmwright/testbed';

export const SYSTEM = 'vmwright-system';

/** Flags with which a standby replaces a killed leader within two seconds. */
export const QUICK_ELECTION = [
  '--leader-elect-lease-duration=2s',
  '--leader-elect-renew-deadline=1200ms',
  '--leader-elect-retry-period=300ms',
];

/** A control plane with the operator's CRDs, roles and webhooks, and a running operator. */
export interface Installed {
  readonly controlPlane: ControlPlane;
  readonly operator: Part;
  /** Returns whether a replica leads, according to its own metrics. */
  leads(replica: Part): Promise<boolean>;
  /** Returns the metrics of a replica. */
  metrics(replica: Part): Promise<string>;
  /** Returns the value of a metric without labels from `operator`. @throws Error if `operator` lacks the metric */
  metric(name: string): Promise<number>;
  /** Returns the number of write requests that the operator has sent. */
  writes(): Promise<number>;
  /** Returns the output of `vmwright orphans`. */
  orphans(): Promise<string>;
  /** Starts another replica. Webhook requests still go to the first replica. */
  replica(): Promise<Part>;
  kubectl(...args: readonly string[]): Promise<string>;
  /** Applies a manifest that must be rejected, and returns the error. */
  refused(manifest: string): Promise<string>;
}

/** Option of tests that check the operator's permissions. */
export interface Auditing {
  /** Records all requests of the operator (`controlPlane.audited`). @default false */
  readonly audit?: boolean;
}

/**
 * Starts a control plane, and KubeVirt if the operator uses it. Then installs the operator and starts it. The stack
 * disposes of all of them.
 * @param options backends, flags and variables of the operator; the caller disposes of the backends
 */
export async function installed(
  stack: AsyncDisposableStack,
  options: Pick<OperatorOptions, 'cloud' | 'vcsim' | 'kubevirt' | 'gpuinfo' | 'command' | 'args' | 'env'> &
    Auditing,
): Promise<Installed> {
  const replicas = new AsyncDisposableStack();
  const controlPlane = stack.use(
    await startControlPlane({
      scheduler: options.kubevirt ?? options.gpuinfo ?? false,
      ...(options.audit && { audit: [`system:serviceaccount:${SYSTEM}:vmwright`] }),
    }),
  );
  if (options.kubevirt) stack.use(await startKubeVirt(controlPlane));
  const { cluster } = controlPlane;
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
    metric: async (name) => {
      const value = new RegExp(`^${name} (\\d+)$`, 'm').exec(await metrics(operator))?.[1];
      if (value === undefined) throw new Error(`the operator has no metric ${name}`);
      return Number(value);
    },
    writes: async () => {
      let count = 0;
      for (const [, value] of (await metrics(operator)).matchAll(WRITES)) count += Number(value);
      return count;
    },
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

/**
 * Creates the Secrets of the backends and sets their addresses in the ConfigMap, as a user of `config/default` does.
 * @param settings more settings, as in the config file
 */
export async function configureBackends(
  cluster: Cluster,
  { cloud, vcsim }: { readonly cloud: Cloud; readonly vcsim: Vcsim },
  settings: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  const secret = ['-n', SYSTEM, 'create', 'secret', 'generic'];
  await cluster.kubectl([...secret, 'vmwright-cloud', `--from-literal=api-key=${cloud.apiKey}`]);
  const { host, username, password, ca } = vcsim;
  const keys = { VC_USER: username, VC_PASS: password };
  const literals = Object.entries(keys).map(([key, value]) => `--from-literal=${key}=${value}`);
  await cluster.kubectl([...secret, 'vc-creds', ...literals]);
  const config = {
    'cloud-url': cloud.url,
    'vc-host': host,
    'vc-thumbprint': new X509Certificate(ca).fingerprint256,
    ...settings,
  };
  await cluster.api.merge(`/api/v1/namespaces/${SYSTEM}/configmaps/vmwright-config`, {
    data: { 'config.yaml': JSON.stringify(config) },
  });
}

/**
 * Matches the metrics that count the operator's write requests. These include renewals of its Lease, so tests that
 * count writes disable leader election.
 */
const WRITES = /^rest_client_requests_total\{[^}]*method="(?:POST|PUT|PATCH|DELETE)"[^}]*\} (\d+)$/gm;
