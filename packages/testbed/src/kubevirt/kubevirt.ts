import { Assets } from '../assets/assets.ts';
import { TestbedError } from '../errors.ts';
import type { ControlPlane } from '../kubernetes/control-plane.ts';
import { createNode, startKwok } from '../kwok/kwok.ts';
import { manifestPath } from '../manifests/load.ts';
import type { Part } from '../process/part.ts';
import { startVirtApi, startVirtController, writeCertificates } from './components.ts';
import { startCdi } from './stand-ins/cdi.ts';
import { startProvisioner, storageManifests } from './stand-ins/provisioner.ts';

/** KubeVirt on a control plane: its own controllers, or kwok's imitation where their programs are not to be had. */
export type KubeVirt = AsyncDisposable & { readonly kwok: Part } & (
    | { readonly imitated: false; readonly virtController: Part; readonly virtApi: Part }
    | { readonly imitated: true; readonly why: string }
  );

const NODES = ['kubevirt-1', 'kubevirt-2'];

/** What virt-controller and the scheduler want to see on a node that can run machines. */
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
 * Starts KubeVirt's real virt-controller and virt-api. kwok plays the nodes and virt-handler, small programs of ours
 * CDI and the CSI driver (see `stand-ins/` and `stages/`); so `printableStatus` is computed by KubeVirt itself. The
 * control plane needs its scheduler.
 */
export async function startKubeVirt({ cluster, pki, scheduler }: ControlPlane): Promise<KubeVirt> {
  if (scheduler === undefined)
    throw new TestbedError('PART_NOT_READY', 'KubeVirt needs startControlPlane({ scheduler: true })');
  await using stack = new AsyncDisposableStack();
  const programs = await kubeVirtPrograms();
  // All of them before virt-controller starts: it ends when one that it watches is not there.
  const crds = ['kubevirt-crds', 'cdi-crds', 'volumesnapshot-crds', 'multus-crds'];
  await cluster.apply(crds.map(manifestPath));
  const files = crds.flatMap((name) => ['-f', manifestPath(name)]);
  await cluster.kubectl(['wait', '--for=condition=Established', '--timeout=60s', ...files]);
  await cluster.apply(
    [...setup(), ...storageManifests()].map((each) => JSON.stringify(each)).join('\n---\n'),
  );
  await cluster.apply([manifestPath('kubevirt-rbac')]);

  stack.use(startProvisioner(cluster));
  stack.use(startCdi(cluster));
  const kwok = stack.use(
    await startKwok(cluster, [
      'csi-snapshotter',
      'error' in programs ? 'kubevirt-imitation' : 'virt-handler',
    ]),
  );
  await Promise.all(NODES.map((name) => createNode(cluster, name, NODE_OPTIONS)));
  if ('error' in programs) {
    const owned = stack.move();
    return {
      imitated: true,
      why: programs.error.message,
      kwok,
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    };
  }

  const certificates = await writeCertificates(pki);
  const starting = [
    startVirtController(cluster, programs.virtController, certificates),
    startVirtApi(cluster, programs.virtApi, certificates),
  ] as const;
  // Whichever comes up is owned, also when the other does not.
  for (const each of await Promise.allSettled(starting))
    if (each.status === 'fulfilled') stack.use(each.value);
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
 * The two programs, or why they are not to be had: that is an answer here and not a failure. A build that fails, say
 * for a full disk, is one.
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
    // The real virt-handler updates instances; kwok, in its place, patches them.
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
