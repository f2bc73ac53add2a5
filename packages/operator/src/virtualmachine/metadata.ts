import type { KubevirtInstance } from '../kubevirt/kinds.ts';
import { plainAddress } from './addresses.ts';
import { childLabels } from './identity.ts';
import type { VirtualMachine } from './resource.ts';

/** Prefix of the labels and annotations that the operator sets and removes. */
export const PREFIX = 'vmwright.dev/';
const LABEL_VALUE = /^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$/;

/**
 * Annotation with the static addresses. The operator sets it on the template of the KubeVirt VirtualMachine. KubeVirt
 * copies it to each instance that it starts.
 */
const ADDRESSES = `${PREFIX}addresses`;

interface Metadata {
  readonly labels: Readonly<Record<string, string>>;
  /**
   * Undefined if there are none: KubeVirt does not store an empty record, so an empty record would look like a
   * difference.
   */
  readonly annotations?: Readonly<Record<string, string>>;
}

/**
 * Returns the labels and annotations of the KubeVirt VirtualMachine and of its template. The descriptive fields of the
 * spec become annotations. If the value is legal, they also become labels. A change of these fields needs no restart,
 * because KubeVirt compares only the spec of the template with the running instance. The next instance gets the new
 * values.
 */
export function machineMetadata(vm: VirtualMachine): Metadata {
  const { baseVm, baseVmVersion, name, version } = vm.spec;
  const described = Object.entries({
    'base-vm': baseVm,
    'base-vm-version': baseVmVersion,
    name,
    version,
  }).flatMap(([key, value]) => (value === undefined ? [] : [[`${PREFIX}${key}`, value] as const]));
  const legal = described.filter(([, value]) => LABEL_VALUE.test(value));
  const addresses = addressesOf(vm);
  const annotations = [...described, ...(addresses === '' ? [] : [[ADDRESSES, addresses] as const])];
  return {
    labels: { ...childLabels(vm), ...Object.fromEntries(legal) },
    ...(annotations.length > 0 && { annotations: Object.fromEntries(annotations) }),
  };
}

/** Whether an instance was started with the static addresses that the spec has now. */
export function hasAddresses({ metadata }: KubevirtInstance, vm: VirtualMachine): boolean {
  return (metadata.annotations?.[ADDRESSES] ?? '') === addressesOf(vm);
}

function addressesOf({ spec: { interfaces = [] } }: VirtualMachine): string {
  return interfaces.map(({ ipAddress }) => plainAddress(ipAddress)).join(',');
}
