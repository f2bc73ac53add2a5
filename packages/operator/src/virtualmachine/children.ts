import { keyOf, parseQuantity, type Secret } from '@vmwright/runtime';
import type { DataVolume, KubevirtMachine, KubevirtMachineSpec } from '../kubevirt/kinds.ts';
import { ownerReference } from '../kubevirt/ownership.ts';
import type { VMDiskImage } from '../vmdiskimage/resource.ts';
import { networkRef } from './addresses.ts';
import type { CloudInit } from './cloud-init.ts';
import { childLabels, macAddress, secretName } from './identity.ts';
import { machineMetadata } from './metadata.ts';
import { VirtualMachine } from './resource.ts';

/* The objects that the operator creates for a VirtualMachine. */

const ROOT = 'root';
const CLOUD_INIT = 'cloudinit';
const VIRTIO = { bus: 'virtio' };

/**
 * Annotation that makes CDI bind the claim of a DataVolume before a pod uses it. CDI copies the annotation to the
 * claim.
 */
const BIND_IMMEDIATELY = 'cdi.kubevirt.io/storage.bind.immediate.requested';

/** Whether a DataVolume on late-binding storage is cloned before its machine starts. */
export function bindsImmediately({ metadata }: DataVolume): boolean {
  return metadata.annotations?.[BIND_IMMEDIATELY] !== undefined;
}

/** Whether the machine should run. */
export function shouldRun({ spec }: VirtualMachine): boolean {
  return spec.ignoreOnDeploy !== true;
}

/** Returns the size of a new root disk, which is never smaller than the image. */
function cloneSizeOf({ spec }: VirtualMachine, image: VMDiskImage): string {
  const wanted = spec.resources.diskSize;
  const least = image.spec.diskSize;
  return (parseQuantity(least) ?? 0) > (parseQuantity(wanted) ?? 0) ? least : wanted;
}

/** Returns the Secret with the cloud-init data. */
export function secretDraft(vm: VirtualMachine, { userdata, networkdata }: CloudInit): Secret {
  const encode = (text: string) => Buffer.from(text).toString('base64');
  return {
    metadata: {
      ...childMetadata(vm),
      name: secretName(vm),
    },
    type: 'Opaque',
    data: {
      userdata: encode(userdata),
      ...(networkdata !== undefined && { networkdata: encode(networkdata) }),
    },
  };
}

/**
 * Returns the DataVolume of the root disk, cloned from a snapshot of the image.
 * @param name name of the DataVolume
 */
export function volumeDraft(
  vm: VirtualMachine,
  image: VMDiskImage,
  snapshot: string,
  name: string,
): DataVolume {
  const { storageClass } = image.spec;
  const { namespace = '' } = image.metadata;
  return {
    metadata: {
      ...childMetadata(vm),
      name,
      annotations: {
        // CDI may otherwise delete the DataVolume after the clone, which would look like a lost disk.
        'cdi.kubevirt.io/storage.deleteAfterCompletion': 'false',
        // Late-binding storage waits for the first consumer of the disk, and a stopped machine never becomes one.
        ...(!shouldRun(vm) && { [BIND_IMMEDIATELY]: 'true' }),
      },
    },
    spec: {
      source: { snapshot: { namespace, name: snapshot } },
      storage: {
        ...(storageClass !== undefined && { storageClassName: storageClass }),
        resources: { requests: { storage: cloneSizeOf(vm, image) } },
      },
    },
  };
}

/**
 * Returns the KubeVirt VirtualMachine.
 * @param volume name of the DataVolume of the root disk
 * @param isHeld whether the operator temporarily halts the machine
 */
export function machineDraft(vm: VirtualMachine, volume: string, isHeld = false): KubevirtMachine {
  const metadata = machineMetadata(vm);
  return {
    metadata: { ...childMetadata(vm), ...metadata },
    spec: {
      runStrategy: shouldRun(vm) && !isHeld ? 'Always' : 'Halted',
      template: { metadata, spec: templateSpec(vm, volume) },
    },
  };
}

function templateSpec(vm: VirtualMachine, volume: string): KubevirtMachineSpec {
  const { resources, interfaces = [] } = vm.spec;
  const secretRef = { name: secretName(vm) };
  const connected = interfaces.map(({ network }, i) => ({
    device: { name: `net${i}`, macAddress: macAddress(vm, i), bridge: {} },
    network: { name: `net${i}`, multus: { networkName: keyOf(networkRef(vm, network)) } },
  }));
  const isOnPodNetwork = connected.length === 0;
  return {
    domain: {
      cpu: { cores: Number(resources.cpu) },
      memory: { guest: resources.memory },
      devices: {
        disks: [
          { name: ROOT, bootOrder: 1, disk: VIRTIO },
          { name: CLOUD_INIT, disk: VIRTIO },
        ],
        interfaces: isOnPodNetwork
          ? [{ name: 'default', masquerade: {} }]
          : connected.map(({ device }) => device),
      },
    },
    networks: isOnPodNetwork ? [{ name: 'default', pod: {} }] : connected.map(({ network }) => network),
    volumes: [
      { name: ROOT, dataVolume: { name: volume } },
      {
        name: CLOUD_INIT,
        cloudInitNoCloud: { secretRef, ...(!isOnPodNetwork && { networkDataSecretRef: secretRef }) },
      },
    ],
  };
}

/** Whether the KubeVirt VirtualMachine has this DataVolume as its root disk. */
export function usesVolume(machine: KubevirtMachine | undefined, volume: string): boolean {
  const { volumes = [] } = machine?.spec?.template?.spec ?? {};
  return volumes.some(({ dataVolume }) => dataVolume?.name === volume);
}

function childMetadata(vm: VirtualMachine) {
  const { namespace = '', name } = vm.metadata;
  return { namespace, name, labels: childLabels(vm), ownerReferences: [ownerReference(VirtualMachine, vm)] };
}
