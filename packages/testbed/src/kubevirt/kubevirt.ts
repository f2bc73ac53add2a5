import { Assets } from '../assets/assets.ts';
import { TestbedError } from '../errors.ts';
import type { ControlPlane } from '../kubernetes/control-plane.ts';
import { createNode, startKwok } from '../kwok/kwok.ts';
import { manifestPath } from '../manifests/load.ts';
import type { Part } from '../process/part.ts';
import { startVirtApi, startVirtController, writeCertificates } from './components.ts';
import { startCdi } from './stand-ins/cdi.ts';
import { cloneAuthorization } from './stand-ins/clone-authorization.ts';
import { startProvisioner } from './stand-ins/provisioner.ts';
import { startResizer } from './stand-ins/resizer.ts';
import { startSnapshotter } from './stand-ins/snapshotter.ts';
import { storageManifests } from './stand-ins/storage-classes.ts';

/** KubeVirt on a control plane: its real controllers, or an imitation by kwok if their binaries are not available. */
export type KubeVirt = AsyncDisposable & { readonly kwok: Part } & (
    | { readonly imitated: false; readonly virtController: Part; readonly virtApi: Part | undefined }
    | { readonly imitated: true; readonly reason: string }
  );

export interface KubeVirtOptions {
  /**
   * Whether to start virt-api, which takes half of the start-up time. Without virt-api, VMs are not validated, get no
   * defaults, and have no subresources.
   * @default true
   */
  readonly virtApi?: boolean;
}

const NODES = ['kubevirt-1', 'kubevirt-2'];

/** Labels and resources that a node needs so that virt-controller and the scheduler place virtual machines on it. */
const NODE_OPTIONS = {
  labels: {
    'kubevirt.io/schedulable': 'true',
    'machine-type.node.kubevirt.io/q35': 'true',
    'cpu-model.node.kubevirt.io/Skylake-Server': 'true',
    'cpu-vendor.node.kubevirt.io/Intel': 'true',
    'host-model-cpu.node.kubevirt.io/Skylake-Server': 'true',
  },
  resources: {
    'devices.kubevirt.io/kvm': '1k',
    'devices.kubevirt.io/tun': '1k',
    'devices.kubevirt.io/vhost-net': '1k',
  },
};

/**
 * Starts KubeVirt's real virt-controller and virt-api, so that `printableStatus` is computed by KubeVirt itself. kwok
 * simulates the nodes and virt-handler (`stages/`); stand-ins simulate CDI and the CSI driver (`stand-ins/`). The
 * control plane must have a scheduler.
 */
export async function startKubeVirt(
  { cluster, pki, scheduler }: ControlPlane,
  { virtApi: withVirtApi = true }: KubeVirtOptions = {},
): Promise<KubeVirt> {
  if (scheduler === undefined)
    throw new TestbedError('PART_NOT_READY', 'KubeVirt needs startControlPlane({ scheduler: true })');
  await using stack = new AsyncDisposableStack();
  const programs = await kubeVirtPrograms();
  // All CRDs must be established before virt-controller starts, because it exits if a CRD that it watches is missing.
  const crds = ['kubevirt-crds', 'cdi-crds', 'volumesnapshot-crds', 'multus-crds'];
  await cluster.apply(crds.map(manifestPath));
  const files = crds.flatMap((name) => ['-f', manifestPath(name)]);
  await cluster.kubectl(['wait', '--for=condition=Established', '--timeout=60s', ...files]);
  await cluster.apply(
    [...setup(), ...storageManifests(), ...cloneAuthorization()]
      .map((each) => JSON.stringify(each))
      .join('\n---\n'),
  );
  await cluster.apply([manifestPath('kubevirt-rbac')]);

  for (const start of [startProvisioner, startResizer, startSnapshotter, startCdi]) stack.use(start(cluster));
  const kwok = stack.use(
    await startKwok(cluster, ['error' in programs ? 'kubevirt-imitation' : 'virt-handler']),
  );
  await Promise.all(NODES.map((name) => createNode(cluster, name, NODE_OPTIONS)));
  if ('error' in programs) {
    const owned = stack.move();
    return {
      imitated: true,
      reason: programs.error.message,
      kwok,
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    };
  }

  const certificates = await writeCertificates(pki);
  const starting = [
    startVirtController(cluster, programs.virtController, certificates),
    withVirtApi ? startVirtApi(cluster, programs.virtApi, certificates) : undefined,
  ] as const;
  // If one of the two programs fails to start, the other one is still disposed of.
  for (const each of await Promise.allSettled(starting))
    if (each.status === 'fulfilled') stack.use(each.value ?? null);
  const [virtController, virtApi] = await Promise.all(starting);
  const owned = stack.move();
  return {
    imitated: false,
    kwok,
    virtController,
    virtApi,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/**
 * Returns the paths of KubeVirt's programs, or the error if they are not available. Throws for other failures, such as
 * a build that fails on a full disk.
 */
export async function kubeVirtPrograms() {
  const assets = new Assets();
  try {
    return { virtController: await assets.path('virt-controller'), virtApi: await assets.path('virt-api') };
  } catch (error) {
    if (error instanceof TestbedError && error.code === 'ASSET_UNAVAILABLE') return { error };
    throw error;
  }
}

function setup(): object[] {
  const rbac = 'rbac.authorization.k8s.io';
  const name = 'testbed-virt-handler';
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kubevirt' } },
    {
      apiVersion: 'kubevirt.io/v1',
      kind: 'KubeVirt',
      metadata: { name: 'kubevirt', namespace: 'kubevirt' },
      spec: { configuration: { developerConfiguration: { featureGates: ['Snapshot'] } } },
    },
    // Lets virt-handler's service account, which kwok impersonates, patch instances. KubeVirt's own role lacks this
    // verb, because the real virt-handler uses updates.
    {
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRole',
      metadata: { name },
      rules: [{ apiGroups: ['kubevirt.io'], resources: ['virtualmachineinstances'], verbs: ['patch'] }],
    },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name },
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name },
      subjects: [{ kind: 'ServiceAccount', name: 'kubevirt-handler', namespace: 'kubevirt' }],
    },
  ];
}
