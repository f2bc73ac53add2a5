import { conditionOf, type EventInput, keyOf, parseQuantity } from '@vmwright/runtime';
import { requiredSpace } from '../kubevirt/overhead.ts';
import type { Action } from './actions.ts';
import type { VirtualMachineReason } from './conditions.ts';
import type { Observed } from './observe.ts';
import type { PlannedCondition } from './problem.ts';
import { VirtualMachine } from './resource.ts';

/** Plan for the growth of a root disk after its clone has succeeded. */
interface ResizePlan {
  readonly condition: PlannedCondition;
  readonly actions: readonly Action[];
  readonly events: readonly EventInput[];
}

/** Conditions of a claim that report a failed expansion. */
const ERRORS = ['ControllerResizeError', 'NodeResizeError'] as const;

/**
 * Plans the growth of the root disk to the size in the spec. The claim gets additional space for the overhead of its
 * file system. Otherwise the disk would be smaller than requested. The size of the image does not matter after the
 * clone. VolumeReady stays True, because the disk is usable at its present size.
 */
export function planResize(vm: VirtualMachine, observed: Observed): ResizePlan {
  const { claim, storageClass, filesystemOverhead, volumes } = observed;
  const { diskSize } = vm.spec.resources;
  const wanted =
    filesystemOverhead === 0
      ? diskSize
      : String(requiredSpace(parseQuantity(diskSize) ?? 0, filesystemOverhead));
  const unchanged = ready('Cloned', 'The root disk is cloned');
  const request = claim?.spec?.resources?.requests?.storage;
  if (claim === undefined || request === undefined || claim.metadata.deletionTimestamp !== undefined)
    return unchanged;
  const { name, uid } = claim.metadata;
  const where = keyOf(claim.metadata);
  // The claim grows only if the spec asks for a larger disk. If an administrator only changes the file system overhead
  // in CDI's configuration, this must not expand the claims of all machines.
  const cloned = volumes.find(({ metadata }) => metadata.name === name)?.spec?.storage?.resources?.requests;
  const isEnlarged = isLarger(diskSize, request) || isLarger(diskSize, cloned?.storage);
  if (isEnlarged && isLarger(wanted, request)) {
    if (storageClass?.allowsExpansion !== true) {
      const message = `The root disk cannot grow from ${request} to ${wanted}: the StorageClass ${storageClass?.name ?? 'of the disk'} does not allow the expansion of volumes. Set allowVolumeExpansion on the StorageClass, or create another ${VirtualMachine.kind}`;
      const isReported = vm.status?.conditions?.some((condition) => condition.message === message);
      const event = { type: 'Warning', reason: 'ExpansionNotSupported', note: message } as const;
      return { ...ready('ExpansionNotSupported', message), events: isReported ? [] : [event] };
    }
    const resizing = ready('Expanding', `The PersistentVolumeClaim ${where} is being expanded to ${wanted}`);
    return { ...resizing, actions: [{ type: 'resizeClaim', name, uid, size: wanted }] };
  }
  const { capacity, conditions } = claim.status ?? {};
  if (!isLarger(request, capacity?.storage)) return unchanged;
  const failed = ERRORS.map((type) => conditionOf(conditions, type)).find(
    (condition) => condition?.status === 'True',
  );
  if (failed !== undefined)
    return ready(
      'ExpansionFailing',
      `The PersistentVolumeClaim ${where} is not expanded to ${request}: ${failed.message ?? failed.type}`,
    );
  if (conditionOf(conditions, 'FileSystemResizePending')?.status === 'True')
    return ready(
      'ExpansionPending',
      `The expansion of the PersistentVolumeClaim ${where} is completed when the machine restarts`,
    );
  return ready('Expanding', `The PersistentVolumeClaim ${where} is being expanded to ${request}`);
}

function isLarger(size: string, than: string | undefined): boolean {
  return (parseQuantity(size) ?? 0) > (parseQuantity(than ?? size) ?? 0);
}

function ready(reason: VirtualMachineReason, message: string): ResizePlan {
  return { condition: { status: 'True', reason, message }, actions: [], events: [] };
}
