import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  ApiError,
  type Client,
  type Draft,
  foreignKind,
  type KubeObject,
  type ObjectRef,
} from '@vmwright/runtime';
import type { Cluster, ControlPlane } from '@vmwright/testbed';
import { NAMESPACES, namespaceOf, vmName } from './database.ts';

interface VirtualMachine extends KubeObject {
  readonly spec?: object;
  readonly status?: object;
}

const VirtualMachine = foreignKind<VirtualMachine>({
  group: 'kubevirt.io',
  version: 'v1',
  kind: 'VirtualMachine',
  plural: 'virtualmachines',
  scope: 'Namespaced',
});

const CACHE_POLL_MS = 500;

const CRDS = new URL('../../packages/testbed/manifests/kubevirt-crds.yaml', import.meta.url);

/**
 * Installs KubeVirt's CRDs and creates the namespaces. virt-controller does not run: the benchmark sets the statuses.
 */
export async function installKubeVirt(cluster: Cluster): Promise<void> {
  await cluster.apply([CRDS.pathname]);
  await cluster.kubectl(['wait', '--for=condition=Established', 'crd/virtualmachines.kubevirt.io']);
  const namespaces = Array.from({ length: NAMESPACES }, (_, i) => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: namespaceOf(i) },
  }));
  await cluster.apply(namespaces.map((each) => JSON.stringify(each)).join('\n---\n'));
}

/**
 * Size of a VM. A `usual` VM takes 4 KB, including its status and managed fields. The API server needs milliseconds of
 * CPU time to decode or patch it. A `small` VM has only the required fields and no managed fields. It is for
 * measurements in which the API server should take little CPU time.
 */
export type VmSize = 'usual' | 'small';

/**
 * Creates the VMs 0 to `count - 1` with a status. Only the first VM is created through the API server. The others are
 * copies that are written directly to etcd. Creating 100,000 VMs through the API server would take a quarter of an
 * hour.
 */
export async function createVms(
  client: Client,
  { store }: Pick<ControlPlane, 'store'>,
  count: number,
  printableStatus: string,
  size: VmSize,
): Promise<void> {
  await client.create(VirtualMachine, machine(0, size));
  await setStatus(client, 0, size === 'usual' ? statusOf(printableStatus) : { printableStatus });
  const {
    apiVersion = 'kubevirt.io/v1',
    kind = 'VirtualMachine',
    ...first
  } = await client.get(VirtualMachine, refOf(0));
  const { resourceVersion: _, ...stored } = first.metadata;
  const metadata = { ...stored, ...(size === 'small' && { managedFields: undefined }) };
  let next = 1;
  const copy = async () => {
    for (let i = next++; i < count; i = next++) {
      const { spec, metadata: own } = machine(i, size);
      const vm = { apiVersion, kind, ...first, metadata: { ...metadata, ...own, uid: randomUUID() }, spec };
      const { namespace, name } = refOf(i);
      await store(`kubevirt.io/virtualmachines/${namespace}/${name}`, JSON.stringify(vm));
    }
  };
  await Promise.all(Array.from({ length: 16 }, copy));
  await untilServed(client);
}

/**
 * Waits until the API server's watch cache has caught up with etcd. Until then, the API server rejects watches with
 * `sendInitialEvents`.
 */
async function untilServed(client: Client): Promise<void> {
  const first = { namespace: namespaceOf(0), fieldSelector: `metadata.name=${vmName(0)}` };
  for (;;) {
    try {
      for await (const _ of client.watch(VirtualMachine, { ...first, sendInitialEvents: true })) return;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
    await sleep(CACHE_POLL_MS);
  }
}

/** Lists all VMs without keeping them. @returns the duration in seconds */
export async function listVms(client: Client): Promise<number> {
  const started = performance.now();
  for await (const _ of client.pages(VirtualMachine));
  return (performance.now() - started) / 1000;
}

/** Changes the status of a VM as KubeVirt does. */
export async function setPrintableStatus(client: Client, i: number, printableStatus: string): Promise<void> {
  await setStatus(client, i, { printableStatus });
}

async function setStatus(client: Client, i: number, status: object): Promise<void> {
  await client.mergePatch(VirtualMachine, refOf(i), { status }, { subresource: 'status' });
}

function refOf(i: number): ObjectRef {
  return { namespace: namespaceOf(i), name: vmName(i) };
}

function statusOf(printableStatus: string): object {
  const lastTransitionTime = '2026-01-01T00:00:00Z';
  return {
    created: true,
    ready: true,
    printableStatus,
    runStrategy: 'Always',
    observedGeneration: 1,
    desiredGeneration: 1,
    conditions: [
      { type: 'Ready', status: 'True', lastProbeTime: null, lastTransitionTime },
      { type: 'LiveMigratable', status: 'True', lastProbeTime: null, lastTransitionTime },
      { type: 'StorageLiveMigratable', status: 'True', lastProbeTime: null, lastTransitionTime },
      { type: 'AgentConnected', status: 'True', lastProbeTime: null, lastTransitionTime },
    ],
    volumeSnapshotStatuses: [
      { name: 'root', enabled: false, reason: 'No VolumeSnapshotClass: Volume snapshots are not configured' },
      { name: 'cloudinit', enabled: false, reason: 'Snapshot is not supported for this volumeSource type' },
    ],
  };
}

/**
 * Returns the manifest of a VM. The VM has no vApp label, so both controllers (ours and the Go comparator) find its row
 * by namespace and name.
 */
function machine(i: number, size: VmSize): Draft<VirtualMachine> {
  const name = vmName(i);
  if (size === 'small')
    return {
      metadata: { namespace: namespaceOf(i), name },
      spec: { runStrategy: 'Always', template: { spec: { domain: { devices: {} } } } },
    };
  const labels = { app: 'bench', 'vdc.ssvirt.io/vdc-id': namespaceOf(i), 'kubevirt.io/vm': name };
  return {
    metadata: { namespace: namespaceOf(i), name, labels },
    spec: {
      runStrategy: 'Always',
      template: {
        metadata: { labels },
        spec: {
          architecture: 'amd64',
          domain: {
            cpu: { cores: 2, sockets: 1, threads: 1 },
            memory: { guest: '4Gi' },
            machine: { type: 'q35' },
            resources: { requests: { memory: '4Gi' } },
            devices: {
              disks: [
                { name: 'root', bootOrder: 1, disk: { bus: 'virtio' } },
                { name: 'cloudinit', disk: { bus: 'virtio' } },
              ],
              interfaces: [{ name: 'default', masquerade: {}, model: 'virtio' }],
              rng: {},
            },
            features: { acpi: { enabled: true }, smm: { enabled: true } },
            firmware: { bootloader: { efi: {} } },
          },
          networks: [{ name: 'default', pod: {} }],
          terminationGracePeriodSeconds: 180,
          evictionStrategy: 'LiveMigrate',
          volumes: [
            { name: 'root', dataVolume: { name: `${name}-root` } },
            {
              name: 'cloudinit',
              cloudInitNoCloud: { userData: `#cloud-config\n${'# setting\n'.repeat(60)}` },
            },
          ],
        },
      },
    },
  };
}
