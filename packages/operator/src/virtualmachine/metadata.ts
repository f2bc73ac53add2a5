import { childLabels } from './identity.ts';
import type { VirtualMachine } from './resource.ts';

/** Prefix of the labels and annotations that the operator sets, and removes when they are no longer wanted. */
export const PREFIX = 'vmwright.dev/';
const LABEL_VALUE = /^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$/;

interface Metadata {
  readonly labels: Readonly<Record<string, string>>;
  /** Undefined without any: KubeVirt does not store an empty record, which would look like a difference. */
  readonly annotations?: Readonly<Record<string, string>>;
}

/**
 * Returns the labels and annotations of the KubeVirt VirtualMachine and of its template. The descriptive fields of the spec
 * are annotations always, and labels where the value is legal. KubeVirt compares only the spec of the template, so a change
 * of these fields needs no restart; a running instance gets the new values at its next start.
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
  return {
    labels: { ...childLabels(vm), ...Object.fromEntries(legal) },
    ...(described.length > 0 && { annotations: Object.fromEntries(described) }),
  };
}
