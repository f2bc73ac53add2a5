import { nodeWorld } from '@vmwright/runtime';
import type { KubeObject, Vcsim, VcsimOptions } from '@vmwright/testbed';
import { field, startVcsim } from '@vmwright/testbed';
import { type CloneOptions, isRef, VcenterClient } from '@vmwright/vsphere';
import { type Auditing, type Installed, installed } from './installed.ts';
import { untilAfter } from './object-versions.ts';
import { type FoundMachine, foldersOf, machinesIn } from './vcenter-inventory.ts';

export const GROUPS = '/apis/vm.codeconnect.vmworld.com/v1beta1/namespaces/default/vmgroups';
export const TEMPLATE = 'vm-operator-template';

export interface Spec {
  readonly replicas?: number;
  readonly cpu?: number;
  readonly memory?: number;
  readonly template?: string;
  readonly [more: string]: unknown;
}

/** An installed operator with a vCenter. */
export interface WithVcenter extends Installed, AsyncDisposable {
  readonly vcsim: Vcsim;
  /** Client that sends requests to vCenter directly, without the operator. */
  readonly vcenter: VcenterClient;
  /** Creates a group in the namespace default. */
  group(name: string, spec?: Spec, annotations?: Readonly<Record<string, string>>): Promise<KubeObject>;
  /** Merges fields into the spec of a group. @returns the changed group */
  change(name: string, spec: Spec): Promise<KubeObject>;
  /** Waits until the group satisfies the predicate. */
  until(name: string, predicate: (group: KubeObject) => boolean): Promise<KubeObject>;
  /** Returns the first version after `known` that satisfies the predicate, even if it is no longer current. */
  untilAfter(known: KubeObject, predicate: (group: KubeObject) => boolean): Promise<KubeObject>;
  /** Waits until the group reports that all its machines run and match the spec. */
  running(name: string, replicas: number): Promise<KubeObject>;
  /** Waits until the group does not exist. */
  gone(name: string): Promise<void>;
  /** Returns the machines in the folder of this name; without a name, the machines of all groups. */
  machines(folder?: string): Promise<readonly FoundMachine[]>;
  /** Returns the names of the folders in `vm-operator`. */
  folders(): Promise<readonly string[]>;
  /** Clones a machine without the operator. @returns its id */
  clone(
    folder: string,
    options: Pick<CloneOptions, 'name' | 'instanceUuid' | 'extraConfig'>,
  ): Promise<string>;
}

/** Starts vcsim, a control plane and the operator. */
export async function install(
  options: {
    readonly vcsim?: VcsimOptions;
    readonly args?: readonly string[];
    readonly env?: Readonly<Record<string, string>>;
  } & Auditing = {},
): Promise<WithVcenter> {
  await using stack = new AsyncDisposableStack();
  const inventory = { standaloneHosts: 0, vms: 2 };
  const vcsim = stack.use(await startVcsim({ inventory, templates: [TEMPLATE], ...options.vcsim }));
  const base = await installed(stack, { ...options, vcsim });
  const { username, password, ca, host } = vcsim;
  const vcenter = stack.use(
    new VcenterClient({
      world: nodeWorld,
      server: host,
      credentials: () => ({ username, password }),
      tls: { ca },
    }),
  );
  const { cluster } = base.controlPlane;
  const owned = stack.move();
  const until = (name: string, predicate: (group: KubeObject) => boolean) =>
    cluster.waitFor(`${GROUPS}/${name}`, predicate);
  return {
    ...base,
    vcsim,
    vcenter,
    group: (name, spec, annotations) =>
      cluster.api.create(GROUPS, {
        apiVersion: 'vm.codeconnect.vmworld.com/v1beta1',
        kind: 'VmGroup',
        metadata: { name, ...(annotations && { annotations }) },
        spec: { replicas: 2, cpu: 2, memory: 1, template: TEMPLATE, ...spec },
      }),
    change: (name, spec) => cluster.api.merge(`${GROUPS}/${name}`, { spec }),
    until,
    untilAfter: (known, predicate) => untilAfter(cluster, GROUPS, known, predicate),
    running: (name, replicas) => until(name, (group) => isRunning(group, replicas)),
    gone: (name) => cluster.waitForGone(`${GROUPS}/${name}`),
    machines: (folder) => machinesIn(vcenter, folder),
    folders: () => foldersOf(vcenter),
    clone: async (folder, options) => {
      const { lookup, machines, tasks } = vcenter;
      const datacenter = await lookup.datacenter();
      const cloned = await tasks.follow(
        await machines.clone({
          ...options,
          template: await lookup.template(datacenter, TEMPLATE),
          folder: await lookup.folder(datacenter, folder),
          resourcePool: await lookup.resourcePool(datacenter),
        }),
      );
      if (!isRef(cloned, 'VirtualMachine')) throw new Error('the clone task returned no machine');
      return cloned.value;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Returns whether the status reports this number of running machines for the current spec. */
export function isRunning(group: KubeObject, replicas: number): boolean {
  return (
    field(group, 'status', 'phase') === 'RUNNING' &&
    field(group, 'status', 'readyReplicas') === replicas &&
    field(group, 'spec', 'replicas') === replicas &&
    field(ready(group), 'observedGeneration') === field(group, 'metadata', 'generation')
  );
}

/** Returns the condition Ready. */
export function ready(group: KubeObject): unknown {
  return [field(group, 'status', 'conditions') ?? []].flat().find((each) => field(each, 'type') === 'Ready');
}
