import { CloudClient, type Server } from '@vmwright/cloud';
import { nodeWorld } from '@vmwright/runtime';
import { type Cloud, type CloudOptions, type KubeObject, startCloud } from '@vmwright/testbed';
import { type Auditing, type Installed, installed } from './installed.ts';
import { untilAfter } from './object-versions.ts';

export const VMS = '/apis/samplecontroller.k8s.io/v1alpha1/namespaces/default/vms';

/** An installed operator with a private cloud. */
export interface WithCloud extends Installed, AsyncDisposable {
  readonly cloud: Cloud;
  /** Creates a VM in the namespace default. */
  vm(name: string, vmname: string, annotations?: Readonly<Record<string, string>>): Promise<KubeObject>;
  /** Waits until the VM satisfies the predicate. */
  until(name: string, is: (vm: KubeObject) => boolean): Promise<KubeObject>;
  /** Returns the first version after `known` that satisfies the predicate, even if it is no longer current. */
  untilAfter(known: KubeObject, is: (vm: KubeObject) => boolean): Promise<KubeObject>;
  /** Waits until the VM does not exist. */
  gone(name: string): Promise<void>;
  /** Client that sends requests to the cloud directly, without the operator. */
  readonly client: CloudClient;
  /** Returns all servers of the cloud. */
  servers(): Promise<readonly Server[]>;
}

export async function install(
  options: {
    readonly cloud?: CloudOptions;
    readonly args?: readonly string[];
    readonly env?: Readonly<Record<string, string>>;
  } & Auditing = {},
): Promise<WithCloud> {
  await using stack = new AsyncDisposableStack();
  const cloud = stack.use(await startCloud(options.cloud));
  const client = stack.use(new CloudClient({ world: nodeWorld, url: cloud.url, apiKey: cloud.apiKey }));
  const { cloud: _, ...rest } = options;
  const base = await installed(stack, { ...rest, cloud });
  const { cluster } = base.controlPlane;
  const owned = stack.move();
  return {
    ...base,
    cloud,
    vm: (name, vmname, annotations) =>
      cluster.api.create(VMS, {
        apiVersion: 'samplecontroller.k8s.io/v1alpha1',
        kind: 'VM',
        metadata: { name, ...(annotations && { annotations }) },
        spec: { vmname },
      }),
    until: (name, is) => cluster.waitFor(`${VMS}/${name}`, is),
    untilAfter: (known, is) => untilAfter(cluster, VMS, known, is),
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
