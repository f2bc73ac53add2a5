import { type Client, type Draft, foreignKind, type KubeObject } from '@vmwright/runtime';
import type { Cluster } from '@vmwright/testbed';
import { createAll } from '../runtime/objects.ts';
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

const CRDS = new URL('../../packages/testbed/manifests/kubevirt-crds.yaml', import.meta.url);

/** Installs KubeVirt's CRDs and creates the namespaces. virt-controller does not run: the benchmark sets the statuses. */
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

/** Creates the VMs 0 to `count - 1` with a status. */
export async function createVms(client: Client, count: number, printableStatus: string): Promise<void> {
  await createAll(client, VirtualMachine, count, machine);
  let next = 0;
  const patch = async () => {
    for (let i = next++; i < count; i = next++) await setStatus(client, i, statusOf(printableStatus));
  };
  await Promise.all(Array.from({ length: 16 }, patch));
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
  const ref = { namespace: namespaceOf(i), name: vmName(i) };
  await client.mergePatch(VirtualMachine, ref, { status }, { subresource: 'status' });
}

function statusOf(printableStatus: string): object {
  const lastTransitionTime = '2026-01-01T00:00:00Z';
  return {
    ...{ created: true, ready: true, printableStatus, runStrategy: 'Always' },
    ...{ observedGeneration: 1, desiredGeneration: 1 },
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

/** A VM of the usual size, about 3 KB with its status. It has no vApp label, so that both sides find its row by name. */
function machine(i: number): Draft<VirtualMachine> {
  const name = vmName(i);
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
