import { createHash } from 'node:crypto';
import type { KubeObject } from '@vmwright/runtime';
import type { VirtualMachine } from './resource.ts';

/* Names, labels and owner references of the objects that the operator creates for a VirtualMachine. */

const MANAGED_BY = 'app.kubernetes.io/managed-by';
/** Label with the UID of the VirtualMachine that an object was created for. VirtualMachineInstances inherit it. */
const UID_LABEL = 'vmwright.dev/uid';

/** Label selector of all objects that the operator manages in the cluster. */
export const MANAGED_SELECTOR = `${MANAGED_BY}=vmwright`;

/** Returns the labels that every child has. */
export function childLabels({ metadata: { uid = '' } }: KubeObject): Readonly<Record<string, string>> {
  return { [MANAGED_BY]: 'vmwright', [UID_LABEL]: uid };
}

/** Returns the label selector of the children of one VirtualMachine. */
export function childSelector({ metadata: { uid = '' } }: KubeObject): string {
  return `${UID_LABEL}=${uid}`;
}

/** Label patch that removes the labels of a child when it is orphaned. */
export const NO_CHILD_LABELS: Readonly<Record<string, null>> = { [MANAGED_BY]: null, [UID_LABEL]: null };

/** Whether an instance of KubeVirt was started for the VirtualMachine. */
export function isInstanceOf({ metadata }: KubeObject, { metadata: { uid } }: VirtualMachine): boolean {
  return uid !== undefined && metadata.labels?.[UID_LABEL] === uid;
}

/** Whether an object carries the labels of a child. */
export function isLabelled({ metadata }: KubeObject): boolean {
  return metadata.labels?.[UID_LABEL] !== undefined;
}

/** Returns the name of the Secret with the cloud-init data. */
export function secretName({ metadata }: VirtualMachine): string {
  return `${metadata.name}-cloudinit`;
}

/** Returns the name of the first DataVolume of the root disk. */
export function firstVolumeName({ metadata: { name, uid = '' } }: VirtualMachine): string {
  return `${name}-root-${uid.slice(0, 8)}`;
}

/**
 * Returns the number of a root disk from the name of its DataVolume: 1 for the first one; undefined if the operator did
 * not choose the name.
 */
function volumeNumber(vm: VirtualMachine, volume: string): number | undefined {
  const first = firstVolumeName(vm);
  if (volume === first) return 1;
  const [, number] = /^-([1-9]\d*)$/.exec(volume.startsWith(first) ? volume.slice(first.length) : '') ?? [];
  return number === undefined ? undefined : Number(number);
}

/** Whether a DataVolume name has the form that the operator gives to root disks of the VirtualMachine. */
export function isVolumeName(vm: VirtualMachine, volume: string): boolean {
  return volumeNumber(vm, volume) !== undefined;
}

/**
 * Returns the name of the DataVolume that replaces `volume`. The old name cannot be used again: the old claim may exist
 * until the machine that uses it stops.
 */
export function nextVolumeName(vm: VirtualMachine, volume: string): string {
  return `${firstVolumeName(vm)}-${(volumeNumber(vm, volume) ?? 1) + 1}`;
}

/** Returns the locally administered MAC address of the interface with this index. It is the same on every reconcile. */
export function macAddress({ metadata: { uid = '' } }: KubeObject, index: number): string {
  const digest = createHash('sha256').update(`${uid}/${index}`).digest();
  return ['02', ...Array.from(digest.subarray(0, 5), (byte) => byte.toString(16).padStart(2, '0'))].join(':');
}
