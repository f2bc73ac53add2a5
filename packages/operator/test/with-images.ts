import { field, type KubeObject } from '@vmwright/testbed';
import { type Installed, installed } from './installed.ts';
import { untilAfter } from './object-versions.ts';

/** Settings for the tests: two sync slots, three retries, and short times. */
const ENV = {
  MAX_VMDI_SYNC_CONCURRENCY: '2',
  MAX_SYNC_RETRY_BACKOFF_DURATION: '1s',
  MAX_SYNC_ATTEMPT_DURATION: '15s',
  MAX_SYNC_ATTEMPT_RETRIES: '3',
};
const ARGS = [
  '--image-stalled-after=2s',
  ...['--leader-elect-lease-duration=3s', '--leader-elect-renew-deadline=2s'],
  '--leader-elect-retry-period=300ms',
];

/** Kinds of an image's children, with the paths of their collections. */
const CHILDREN = {
  volumes: 'cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes',
  snapshots: 'snapshot.storage.k8s.io/v1/namespaces/default/volumesnapshots',
} as const;

/** A cluster with KubeVirt, a stand-in for CDI, and the operator. */
export interface WithImages extends Installed, AsyncDisposable {
  /**
   * Creates an image in the namespace `default`.
   * @param behaviour behaviour of the import, which the URL `http://images.example/<behaviour>/…` selects
   */
  create(name: string, behaviour: string, spec?: object, annotations?: object): Promise<KubeObject>;
  patch(name: string, patch: object): Promise<KubeObject>;
  image(name: string): Promise<KubeObject>;
  until(name: string, is: (image: KubeObject) => boolean): Promise<KubeObject>;
  untilPhase(name: string, phase: string): Promise<KubeObject>;
  /** Returns the first version after `known` that satisfies the predicate, even if it is no longer current. */
  untilAfter(known: KubeObject, is: (image: KubeObject) => boolean): Promise<KubeObject>;
  remove(name: string): Promise<void>;
  gone(name: string): Promise<void>;
  /** Returns the DataVolumes or VolumeSnapshots that an image owns. */
  children(image: KubeObject, kind: keyof typeof CHILDREN): Promise<readonly KubeObject[]>;
  /** Creates a VirtualMachine that refers to an image. It is paused, so the operator creates no children for it. */
  createMachine(name: string, image: string | { name: string; namespace: string }): Promise<KubeObject>;
  removeMachine(name: string): Promise<void>;
  /** Returns the reasons of the events about an image. */
  events(name: string): Promise<readonly string[]>;
}

export const IMAGES = '/apis/crd.pelotech.ot/v1alpha1/namespaces/default/vmdiskimages';
const MACHINES = '/apis/pelotech.ot/v1alpha1/namespaces/default/virtualmachines';

export async function withImages(): Promise<WithImages> {
  await using stack = new AsyncDisposableStack();
  const env = await installed(stack, { kubevirt: true, audit: true, env: ENV, args: ARGS });
  const { cluster } = env.controlPlane;
  const { api } = cluster;
  const owned = stack.move();
  const until: WithImages['until'] = (name, is) => cluster.waitFor(`${IMAGES}/${name}`, is);
  return {
    ...env,
    create: (name, behaviour, spec, annotations) =>
      api.create(IMAGES, imageManifest(name, behaviour, spec, annotations)),
    patch: (name, patch) => api.merge(`${IMAGES}/${name}`, patch),
    image: (name) => api.get(`${IMAGES}/${name}`),
    until,
    untilPhase: (name, phase) => until(name, (image) => field(image, 'status', 'phase') === phase),
    untilAfter: (known, is) => untilAfter(cluster, IMAGES, known, is),
    remove: async (name) => {
      await api.delete(`${IMAGES}/${name}`);
      await cluster.waitForGone(`${IMAGES}/${name}`);
    },
    gone: (name) => cluster.waitForGone(`${IMAGES}/${name}`),
    children: async ({ metadata: { uid } }, kind) => {
      const objects = await api.list(`/apis/${CHILDREN[kind]}`);
      return objects.filter(({ metadata }) => field(metadata, 'ownerReferences', '0', 'uid') === uid);
    },
    createMachine: (name, image) => api.create(MACHINES, machineManifest(name, image)),
    removeMachine: async (name) => {
      // Resumes the machine first, because the operator does not remove the finalizer of a paused machine.
      await api.merge(`${MACHINES}/${name}`, { metadata: { annotations: { 'vmwright.dev/paused': null } } });
      await api.delete(`${MACHINES}/${name}`);
      await cluster.waitForGone(`${MACHINES}/${name}`);
    },
    events: async (name) => {
      const all = await api.list('/apis/events.k8s.io/v1/namespaces/default/events');
      return all
        .filter((event) => field(event, 'regarding', 'name') === name)
        .map((event) => String(event.reason));
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function imageManifest(name: string, behaviour: string, spec: object = {}, annotations: object = {}): object {
  return {
    apiVersion: 'crd.pelotech.ot/v1alpha1',
    kind: 'VMDiskImage',
    metadata: { name, annotations },
    spec: {
      secretRef: '',
      sourceType: 'http',
      diskSize: '1Gi',
      snapshotClass: 'testbed',
      url: `http://images.example/${behaviour}/${name}.qcow2`,
      ...spec,
    },
  };
}

function machineManifest(name: string, image: string | { name: string; namespace: string }): object {
  return {
    apiVersion: 'pelotech.ot/v1alpha1',
    kind: 'VirtualMachine',
    metadata: { name, annotations: { 'vmwright.dev/paused': 'true' } },
    spec: {
      resources: { cpu: '1', memory: '1Gi', diskSize: '1Gi' },
      vmDiskImageRef: typeof image === 'string' ? { name: image } : image,
    },
  };
}

/** Returns a condition of an image. */
export function conditionIn(image: KubeObject, type: string): Readonly<Record<string, unknown>> | undefined {
  const conditions = field(image, 'status', 'conditions');
  if (!Array.isArray(conditions)) return undefined;
  const found: unknown = conditions.find((each) => field(each, 'type') === type);
  return typeof found === 'object' && found !== null ? { ...found } : undefined;
}
