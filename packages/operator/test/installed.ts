import { readFile } from 'node:fs/promises';
import { CloudClient, type Server } from '@vmwright/cloud';
import { nodeWorld } from '@vmwright/runtime';
import {
  type Cloud,
  type CloudOptions,
  type ControlPlane,
  freePort,
  installOperator,
  type KubeObject,
  type Part,
  startCloud,
  startControlPlane,
  startOperator,
} from '@vmwright/testbed';

export const SYSTEM = 'vmwright-system';
export const VMS = '/apis/samplecontroller.k8s.io/v1alpha1/namespaces/default/vms';

/** A cluster with the operator's kinds, roles and webhooks, a cloud, and the operator. */
export interface Installed extends AsyncDisposable {
  readonly controlPlane: ControlPlane;
  readonly cloud: Cloud;
  readonly operator: Part;
  /** Whether this one leads, by its own metrics. */
  leads(replica: Part): Promise<boolean>;
  /** Another replica; the webhooks are served by the first. */
  replica(): Promise<Part>;
  kubectl(...args: readonly string[]): Promise<string>;
  /** What `kubectl` says when it refuses. */
  refused(manifest: string): Promise<string>;
  vm(name: string, vmname: string, annotations?: Readonly<Record<string, string>>): Promise<KubeObject>;
  /** Waits until the object is so. */
  until(name: string, is: (vm: KubeObject) => boolean): Promise<KubeObject>;
  gone(name: string): Promise<void>;
  /** The way to the cloud past the operator. */
  readonly client: CloudClient;
  /** All of the cloud's machines. */
  servers(): Promise<readonly Server[]>;
}

export async function install(
  options: { readonly cloud?: CloudOptions; readonly args?: readonly string[] } = {},
): Promise<Installed> {
  await using stack = new AsyncDisposableStack();
  const controlPlane = stack.use(await startControlPlane());
  const { cluster } = controlPlane;
  const cloud = stack.use(await startCloud(options.cloud));
  const client = stack.use(new CloudClient({ world: nodeWorld, url: cloud.url, apiKey: cloud.apiKey }));
  const webhookPort = await freePort();
  await cluster.kubectl(['create', 'namespace', SYSTEM]);
  await installOperator(cluster, SYSTEM, webhookPort);
  const start = (more: object) =>
    startOperator({
      cluster,
      cloud,
      namespace: SYSTEM,
      ...(options.args && { args: options.args }),
      ...more,
    });
  const operator = stack.use(await start({ webhookPort }));
  const owned = stack.move();
  const kubectl = async (...args: readonly string[]) => (await cluster.kubectl(args)).stdout;
  return {
    controlPlane,
    cloud,
    operator,
    leads: async (replica) => {
      const port = /"msg":"serving metrics[^\n]*"port":(\d+)/.exec(await readFile(replica.log, 'utf8'))?.[1];
      const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      return /^leader_election_master_status\{name="vmwright"\} 1$/m.test(metrics);
    },
    replica: async () => owned.use(await start({})),
    kubectl,
    refused: async (manifest) => {
      const refusal = await cluster.apply(manifest).then(
        () => 'it was accepted',
        (error: unknown) => String(error),
      );
      return refusal;
    },
    vm: (name, vmname, annotations) =>
      cluster.api.create(VMS, {
        apiVersion: 'samplecontroller.k8s.io/v1alpha1',
        kind: 'VM',
        metadata: { name, ...(annotations && { annotations }) },
        spec: { vmname },
      }),
    until: (name, is) => cluster.waitFor(`${VMS}/${name}`, is),
    gone: (name) => cluster.waitForGone(`${VMS}/${name}`),
    client,
    servers: async () => {
      const all: Server[] = [];
      for await (const page of client.list()) all.push(...page);
      return all;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
