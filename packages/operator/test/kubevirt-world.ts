import { ApiError, type Cluster, canary, condition, field, type KubeObject } from '@vmwright/testbed';

/* Helpers of tests with VirtualMachines and VMDiskImages, and an audit of their children. */

export const MACHINES = '/apis/pelotech.ot/v1alpha1';
export const IMAGES = '/apis/crd.pelotech.ot/v1alpha1';
const KUBEVIRT = '/apis/kubevirt.io/v1';
const CDI = '/apis/cdi.kubevirt.io/v1beta1';
const SNAPSHOTS = '/apis/snapshot.storage.k8s.io/v1/volumesnapshots';

/** A VirtualMachine to create. */
export interface NewMachine {
  readonly name: string;
  readonly namespace: string;
  readonly image: { readonly name: string; readonly namespace: string };
  /** Spec of the image, if the VirtualMachine creates it. */
  readonly template?: object;
  readonly ignoreOnDeploy?: boolean;
}

/** Returns the spec of an image that is imported quickly. */
export function imageSpec(spec: object = {}): object {
  const url = 'http://images.example/disk.qcow2';
  return { secretRef: '', sourceType: 'http', url, diskSize: '1Gi', snapshotClass: 'testbed', ...spec };
}

export async function createMachine(cluster: Cluster, machine: NewMachine): Promise<void> {
  const { name, namespace, image, template, ignoreOnDeploy = false } = machine;
  await cluster.api.create(`${MACHINES}/namespaces/${namespace}/virtualmachines`, {
    apiVersion: 'pelotech.ot/v1alpha1',
    kind: 'VirtualMachine',
    metadata: { name },
    spec: {
      ignoreOnDeploy,
      resources: { cpu: 1, memory: '64Mi', diskSize: '1Gi' },
      users: [{ name: 'demo', plain_text_passwd: canary('machine-password'), lock_passwd: false }],
      vmDiskImageRef: image,
      ...(template && { vmDiskImageTemplate: template }),
    },
  });
}

export function machinePath(namespace: string, name: string): string {
  return `${MACHINES}/namespaces/${namespace}/virtualmachines/${name}`;
}

export function imagePath(namespace: string, name: string): string {
  return `${IMAGES}/namespaces/${namespace}/vmdiskimages/${name}`;
}

/**
 * Deletes an object.
 * @returns false if the API server rejects the deletion: the webhook found a reference to the object, or did not
 *   answer
 */
export async function deleteObject(cluster: Cluster, path: string): Promise<boolean> {
  try {
    await cluster.api.delete(path);
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return true;
    if (error instanceof ApiError) return false;
    throw error;
  }
}

/** VirtualMachines and VMDiskImages in the cluster, and the differences between them and their children. */
export interface Audit {
  readonly machines: readonly KubeObject[];
  readonly images: readonly KubeObject[];
  /** Children that are missing, duplicated or orphaned, and wrong statuses. Empty if the cluster has converged. */
  readonly problems: readonly string[];
}

/** Compares VirtualMachines and VMDiskImages with their children, independently of the operator. */
export async function audit({ api }: Cluster): Promise<Audit> {
  const lists = [
    ...[`${MACHINES}/virtualmachines`, `${IMAGES}/vmdiskimages`, `${KUBEVIRT}/virtualmachines`],
    ...[`${CDI}/datavolumes`, SNAPSHOTS, '/api/v1/persistentvolumeclaims'],
    '/api/v1/secrets?labelSelector=app.kubernetes.io/managed-by=vmwright',
  ];
  const [machines = [], images = [], kubevirt = [], volumes = [], snapshots = [], claims = [], secrets = []] =
    await Promise.all(lists.map((path) => api.list(path)));
  const problems: string[] = [];
  const expectOne = (owner: KubeObject, what: string, all: readonly KubeObject[]) => {
    const owned = all.filter((each) => ownerUid(each) === owner.metadata.uid);
    const isLive = owned.every(({ metadata }) => metadata.deletionTimestamp === undefined);
    if (owned.length !== 1 || !isLive) problems.push(`${nameOf(owner)} has ${owned.length} ${what}`);
  };
  for (const machine of machines) {
    if (condition(machine, 'Ready') !== 'True')
      problems.push(`${nameOf(machine)} is not ready: ${String(field(machine, 'status', 'message'))}`);
    expectOne(machine, 'KubeVirt VirtualMachines', kubevirt);
    expectOne(machine, 'DataVolumes', volumes);
    expectOne(machine, 'Secrets', secrets);
  }
  for (const image of images) {
    if (field(image, 'status', 'phase') !== 'Ready')
      problems.push(`${nameOf(image)} is not Ready: ${String(field(image, 'status', 'message'))}`);
    expectOne(image, 'DataVolumes', volumes);
    expectOne(image, 'VolumeSnapshots', snapshots);
    const references = countReferences(image, machines);
    if (field(image, 'status', 'references') !== references)
      problems.push(
        `${nameOf(image)} reports ${String(field(image, 'status', 'references'))} of ${references} references`,
      );
  }
  for (const volume of volumes) expectOne(volume, 'PersistentVolumeClaims', claims);
  const owners = new Set([...machines, ...images, ...volumes].map(({ metadata }) => metadata.uid));
  const children = { kubevirt, volumes, snapshots, secrets, claims };
  for (const [what, all] of Object.entries(children))
    for (const child of all)
      if (!owners.has(ownerUid(child) ?? ''))
        problems.push(`${nameOf(child)} (${what}) belongs to no object`);
  return { machines, images, problems };
}

/** Counts the VirtualMachines that name an image. The tests create no other references. */
function countReferences(image: KubeObject, machines: readonly KubeObject[]): number {
  return machines.filter((machine) => {
    const ref = field(machine, 'spec', 'vmDiskImageRef');
    const namespace = field(ref, 'namespace') ?? machine.metadata.namespace;
    return field(ref, 'name') === image.metadata.name && namespace === image.metadata.namespace;
  }).length;
}

/** Returns the UID of the owner that is marked as the controller of a child; undefined if there is none. */
function ownerUid(child: KubeObject): string | undefined {
  const owners: unknown = field(child, 'metadata', 'ownerReferences');
  const controller = Array.isArray(owners)
    ? owners.find((owner) => field(owner, 'controller') === true)
    : undefined;
  const uid = field(controller, 'uid');
  return typeof uid === 'string' ? uid : undefined;
}

function nameOf({ metadata }: KubeObject): string {
  return `${metadata.namespace}/${metadata.name}`;
}
