import { type Draft, keyOf, type ObjectCache, parseQuantity } from '@vmwright/runtime';
import type { VMDiskImage } from '../vmdiskimage/resource.ts';
import type { VirtualMachine } from './resource.ts';

/** Namespace and name of a VMDiskImage. */
export interface ImageRef {
  readonly namespace: string;
  readonly name: string;
}

/** Annotation of a VMDiskImage that was created from a template: the VirtualMachine that needed it first. */
const CREATED_FOR = 'vmwright.dev/created-for';

export function imageRefOf({ metadata, spec: { vmDiskImageRef } }: VirtualMachine): ImageRef {
  return { namespace: vmDiskImageRef.namespace ?? metadata.namespace ?? '', name: vmDiskImageRef.name };
}

/** Returns the key of the referenced image in caches and indexes. */
export function imageKeyOf(vm: VirtualMachine): string {
  return keyOf(imageRefOf(vm));
}

/** Index of VirtualMachines by the key of the image that they refer to. */
export const IMAGE_INDEX = 'vmdiskimage';

/** Adds the index of VirtualMachines by their image. May be called more than once. */
export function indexByImage(machines: Pick<ObjectCache<VirtualMachine>, 'addIndex'>): void {
  machines.addIndex(IMAGE_INDEX, (vm) => [imageKeyOf(vm)]);
}

/**
 * Returns the image to create from the VirtualMachine's template; undefined without a template. The image has no owner
 * reference, because several VirtualMachines can share it.
 */
export function imageFromTemplate(vm: VirtualMachine): Draft<VMDiskImage> | undefined {
  const { vmDiskImageTemplate } = vm.spec;
  if (vmDiskImageTemplate === undefined) return undefined;
  return {
    metadata: { ...imageRefOf(vm), annotations: { [CREATED_FOR]: keyOf(vm.metadata) } },
    spec: vmDiskImageTemplate,
  };
}

/** Returns the names of the template's fields that differ from the image, sorted. */
export function templateDifferences(vm: VirtualMachine, image: VMDiskImage): readonly string[] {
  const template: Readonly<Record<string, unknown>> = vm.spec.vmDiskImageTemplate ?? {};
  const actual: Readonly<Record<string, unknown>> = image.spec;
  const differs = (field: string) => template[field] !== undefined && !isSame(template[field], actual[field]);
  return Object.keys(template).filter(differs).toSorted();
}

/** Compares the values of a field: sizes by their number of bytes, objects by the fields that the template sets. */
function isSame(wanted: unknown, actual: unknown): boolean {
  if (typeof wanted === 'object' && wanted !== null) {
    if (typeof actual !== 'object' || actual === null) return false;
    const values = new Map<string, unknown>(Object.entries(actual));
    return Object.entries(wanted).every(([field, value]) => isSame(value, values.get(field)));
  }
  if (wanted === actual) return true;
  if (typeof wanted !== 'string' || typeof actual !== 'string') return false;
  const bytes = parseQuantity(wanted);
  return bytes !== undefined && bytes === parseQuantity(actual);
}
