import { type Caches, keyOf, type Predicate, type Watch, watch } from '@vmwright/runtime';
import {
  CdiConfig,
  KubevirtInstance,
  NetworkAttachmentDefinition,
  PersistentVolumeClaim,
  StorageClass,
} from '../kubevirt/kinds.ts';
import { VMDiskImage } from '../vmdiskimage/resource.ts';
import { holderPart } from './address-holder.ts';
import { ADDRESS_INDEX, addressKeys, networkRef } from './addresses.ts';
import { isLabelled } from './identity.ts';
import { IMAGE_INDEX, indexByImage } from './image-ref.ts';
import { VirtualMachine } from './resource.ts';

/* Indexes of VirtualMachines, and watches that enqueue a VirtualMachine when another object changes. */

const NETWORK_INDEX = 'virtualmachine-network';
const VOLUME_INDEX = 'virtualmachine-volume';

/** Adds the indexes that the watches use. */
export function addWatchIndexes(caches: Caches): void {
  const machines = caches.get(VirtualMachine);
  indexByImage(machines);
  machines.addIndex(ADDRESS_INDEX, addressKeys);
  machines.addIndex(NETWORK_INDEX, (vm) =>
    (vm.spec.interfaces ?? []).map(({ network }) => keyOf(networkRef(vm, network))),
  );
  machines.addIndex(VOLUME_INDEX, ({ metadata: { namespace }, status }) =>
    status?.dataVolume === undefined ? [] : [keyOf({ namespace, name: status.dataVolume })],
  );
}

/** Returns the watches of objects that VirtualMachines do not own. */
export function watchesOf(caches: Caches): readonly Watch[] {
  const machines = caches.get(VirtualMachine);
  const found = (index: string, value: string) =>
    [...machines.byIndex(index, value)].map(({ metadata }) => keyOf(metadata));
  return [
    // Our VirtualMachine, its KubeVirt VirtualMachine and its VirtualMachineInstance have the same name.
    watch(
      KubevirtInstance,
      (instance) => (isLabelled(instance) ? [keyOf(instance.metadata)] : []),
      partChanged(({ metadata, status }) => [
        metadata.uid,
        metadata.deletionTimestamp,
        status?.phase,
        status?.nodeName,
        status?.interfaces?.map(({ ipAddress }) => ipAddress),
        status?.conditions?.map(({ type, status: value, reason, message }) => [type, value, reason, message]),
      ]),
    ),
    // A claim has the name of its DataVolume. So the index by DataVolume also finds the VirtualMachine of a claim.
    watch(PersistentVolumeClaim, ({ metadata }) => found(VOLUME_INDEX, keyOf(metadata))),
    // An update that changes only the progress of an import enqueues no VirtualMachine.
    watch(
      VMDiskImage,
      ({ metadata }) => found(IMAGE_INDEX, keyOf(metadata)),
      partChanged(({ metadata, spec, status }) => [
        metadata.uid,
        metadata.deletionTimestamp,
        metadata.annotations,
        spec,
        status?.phase,
        status?.phase === 'Failed' || status?.phase === 'RetryableFailure' ? status.message : '',
        status?.snapshots,
      ]),
    ),
    // Two VirtualMachines may have the same address. Some fields decide which of them keeps it. If such a field of one
    // VirtualMachine changes, the other one is enqueued.
    watch(
      VirtualMachine,
      (vm) =>
        addressKeys(vm)
          .flatMap((key) => found(ADDRESS_INDEX, key))
          .filter((key) => key !== keyOf(vm.metadata)),
      partChanged(holderPart),
    ),
    watch(
      NetworkAttachmentDefinition,
      ({ metadata }) => found(NETWORK_INDEX, keyOf(metadata)),
      ({ type }) => type !== 'changed',
    ),
    watch(
      StorageClass,
      ({ metadata: { name } }) =>
        [...caches.get(VMDiskImage).list()]
          .filter(({ spec }) => spec.storageClass === name)
          .flatMap(({ metadata }) => found(IMAGE_INDEX, keyOf(metadata))),
      partChanged(({ allowVolumeExpansion }) => [allowVolumeExpansion]),
    ),
    // The overhead of file systems determines the size of claims, so its change enqueues every VirtualMachine.
    watch(
      CdiConfig,
      () => machines.keys(),
      partChanged(({ status }) => [status?.filesystemOverhead]),
    ),
  ];
}

/** Matches added and removed objects, and objects of which the given part has changed. */
function partChanged<T extends KubevirtInstance | VMDiskImage | VirtualMachine | StorageClass | CdiConfig>(
  part: (object: T) => readonly unknown[],
): Predicate<T> {
  return ({ type, object, before }) =>
    type !== 'changed' ||
    before === undefined ||
    JSON.stringify(part(before)) !== JSON.stringify(part(object));
}
