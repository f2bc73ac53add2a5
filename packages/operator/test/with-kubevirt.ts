import { type Cluster, field, type KubeObject } from '@vmwright/testbed';
import { type Installed, installed } from './installed.ts';
import { untilAfter } from './object-versions.ts';

/** Namespace of the VirtualMachines in tests. */
export const WORK = 'work';
/** Namespace of the images in tests. */
export const FARM = 'vmdi-farm';

/** Paths of the collections that tests read and write. */
export const PATHS = {
  machines: `/apis/pelotech.ot/v1alpha1/namespaces/${WORK}/virtualmachines`,
  images: `/apis/crd.pelotech.ot/v1alpha1/namespaces/${FARM}/vmdiskimages`,
  kubevirt: `/apis/kubevirt.io/v1/namespaces/${WORK}/virtualmachines`,
  instances: `/apis/kubevirt.io/v1/namespaces/${WORK}/virtualmachineinstances`,
  volumes: `/apis/cdi.kubevirt.io/v1beta1/namespaces/${WORK}/datavolumes`,
  claims: `/api/v1/namespaces/${WORK}/persistentvolumeclaims`,
  secrets: `/api/v1/namespaces/${WORK}/secrets`,
  networks: `/apis/k8s.cni.cncf.io/v1/namespaces/${WORK}/network-attachment-definitions`,
  events: `/apis/events.k8s.io/v1/namespaces/${WORK}/events`,
} as const;

/** An installed operator on a private cluster with KubeVirt. */
export interface WithKubevirt extends Installed, AsyncDisposable {
  /** Creates a VirtualMachine that refers to the image `base`, without interfaces. */
  machine(name: string, spec?: object, annotations?: Readonly<Record<string, string>>): Promise<KubeObject>;
  /** Waits until the VirtualMachine satisfies the predicate. */
  until(name: string, is: (vm: KubeObject) => boolean): Promise<KubeObject>;
  /** Returns the first version after `known` that satisfies the predicate, even if it is no longer current. */
  untilAfter(known: KubeObject, is: (vm: KubeObject) => boolean): Promise<KubeObject>;
  /** Merges a patch into the VirtualMachine. */
  patch(name: string, patch: object): Promise<KubeObject>;
  /** Creates an image in the namespace of images. */
  image(name: string, spec?: object): Promise<KubeObject>;
  network(name: string): Promise<KubeObject>;
  /** Causes a reconcile of the VirtualMachine by changing an annotation that has no other effect. */
  touch(name: string): Promise<void>;
}

export async function install(args: readonly string[] = []): Promise<WithKubevirt> {
  await using stack = new AsyncDisposableStack();
  const base = await installed(stack, { kubevirt: true, audit: true, args });
  const { cluster } = base.controlPlane;
  for (const namespace of [WORK, FARM]) await cluster.kubectl(['create', 'namespace', namespace]);
  const patch = (name: string, body: object) => cluster.api.merge(`${PATHS.machines}/${name}`, body);
  let touches = 0;
  const owned = stack.move();
  return {
    ...base,
    machine: (name, spec, annotations) =>
      cluster.api.create(PATHS.machines, {
        apiVersion: 'pelotech.ot/v1alpha1',
        kind: 'VirtualMachine',
        metadata: { name, ...(annotations && { annotations }) },
        spec: {
          resources: { cpu: 1, memory: '1Gi', diskSize: '2Gi' },
          vmDiskImageRef: { name: 'base', namespace: FARM },
          ...spec,
        },
      }),
    until: (name, is) => cluster.waitFor(`${PATHS.machines}/${name}`, is),
    untilAfter: (known, is) => untilAfter(cluster, PATHS.machines, known, is),
    patch,
    image: (name, spec) =>
      cluster.api.create(PATHS.images, {
        apiVersion: 'crd.pelotech.ot/v1alpha1',
        kind: 'VMDiskImage',
        metadata: { name },
        spec: { secretRef: '', sourceType: 'blank', diskSize: '1Gi', ...spec },
      }),
    network: (name) => createNetwork(cluster, name),
    touch: async (name) => {
      await patch(name, { metadata: { annotations: { 'example.com/touched': String(++touches) } } });
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Creates a network that interfaces of VirtualMachines can refer to. */
export function createNetwork({ api }: Cluster, name: string): Promise<KubeObject> {
  return api.create(PATHS.networks, {
    apiVersion: 'k8s.cni.cncf.io/v1',
    kind: 'NetworkAttachmentDefinition',
    metadata: { name },
    spec: { config: '{"cniVersion":"0.3.1","type":"bridge"}' },
  });
}

/** Waits for an event about a VirtualMachine. @param text part of the event's note @returns the event's note */
export async function noteOf(
  { api }: Cluster,
  name: string,
  reason: string,
  type?: 'Warning',
  text = '',
): Promise<string> {
  const isWanted = (event: KubeObject) =>
    field(event, 'regarding', 'name') === name &&
    field(event, 'reason') === reason &&
    (type === undefined || field(event, 'type') === type) &&
    String(field(event, 'note')).includes(text);
  for await (const { object } of api.watch(PATHS.events, AbortSignal.timeout(30_000)))
    if (isWanted(object)) return String(field(object, 'note'));
  throw new Error(`no event ${reason} about ${name}`);
}

/** Returns the reason of the condition Ready of a VirtualMachine. */
export function reasonOf(vm: KubeObject): unknown {
  return field(conditionIn(vm, 'Ready'), 'reason');
}

/** Returns a condition of an object. */
export function conditionIn(object: KubeObject, type: string): unknown {
  const conditions = field(object, 'status', 'conditions');
  return Array.isArray(conditions) ? conditions.find((each) => field(each, 'type') === type) : undefined;
}
