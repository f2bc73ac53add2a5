import type { ConditionError } from '../vcenter/errors.ts';
import { MB_IN_GIB } from './memory.ts';
import type { Replica, VmGroup } from './resource.ts';

/** A machine of the group, as the inventory shows it. */
export interface Machine {
  readonly slot: number;
  /** Current name in vCenter; people can rename a machine. */
  readonly name: string;
  /** Value of the machine's reference in vCenter, such as `vm-12`. */
  readonly id: string;
  readonly power: 'poweredOn' | 'poweredOff' | 'suspended';
  /** False while the ESXi host of the machine does not respond, or the machine's files are unavailable. */
  readonly isConnected: boolean;
  /** False when people moved the machine to another folder below the watched folder. */
  readonly isInFolder: boolean;
  /** True when people turned the machine into a template. */
  readonly isTemplate: boolean;
  readonly cpus: number;
  readonly memoryMb: number;
  /** Template of the machine, as the spec named it when the machine was cloned. */
  readonly template: string;
  /** Reference of that template. */
  readonly templateId: string;
  /** Changes that need no restart: more CPUs if `cpus` is true, and more memory up to `maxMemoryMb`. */
  readonly hotAdd: { readonly cpus: boolean; readonly maxMemoryMb: number };
  readonly ip?: string | undefined;
  readonly host?: string | undefined;
}

/** State that a reconcile has observed in vCenter, and state of the operator's own operations. */
export interface Observed {
  /** Whether the group was never placed, so that no vCenter was observed. @default false */
  readonly isUnplaced?: boolean;
  readonly machines: readonly Machine[];
  /** Operations in flight by slot, including those with a result that the inventory does not show yet. */
  readonly operating: ReadonlyMap<number, Operating>;
  /** Slots that back off, after a failed operation or after any power-on. No operation is planned for them. */
  readonly backingOff: ReadonlySet<number>;
  /** Whether clones back off, so that no machine is cloned. */
  readonly areClonesBackingOff: boolean;
  /** Slots with machines that keep their size for now, because a change of the size failed. */
  readonly resizeRejected: ReadonlySet<number>;
  /**
   * Slots without a machine in vCenter: the machine was destroyed, or a lookup by UUID found no machine of the group.
   */
  readonly gone: ReadonlySet<number>;
  /** Names of machines that a lookup by UUID found outside the group's folder, by slot. */
  readonly movedAway: ReadonlyMap<number, string>;
  /** Reference of the template in the spec, as it was last found. */
  readonly templateId?: string | undefined;
  /** Whether the template was found by this reconcile. */
  readonly isTemplateFound?: boolean | undefined;
  /** Recent failures that no success has followed, in the order in which they first occurred. */
  readonly errors: readonly ConditionError[];
}

/** An operation in flight. */
export interface Operating {
  readonly type: ActionType;
  /** The vCenter task. */
  readonly task?: string | undefined;
}

/** An operation to start on the machine of a slot. */
export type Action =
  | {
      readonly type: 'clone';
      readonly slot: number;
      readonly name: string;
      readonly instanceUuid: string;
      /** Whether an earlier request may have created the machine somewhere. */
      readonly isRetry: boolean;
    }
  | { readonly type: 'powerOn'; readonly slot: number; readonly id: string }
  | { readonly type: 'reconfigure'; readonly slot: number; readonly id: string }
  /** Asks the guest to shut down. */
  | { readonly type: 'shutDown'; readonly slot: number; readonly id: string }
  /** Powers the machine off if `isOn`, changes its size, and powers it on, even if vCenter rejects the size. */
  | { readonly type: 'resize'; readonly slot: number; readonly id: string; readonly isOn: boolean }
  | { readonly type: 'remove'; readonly slot: number; readonly id: string; readonly isOn: boolean }
  /** Looks up a terminating machine by its UUID in the whole vCenter, if the inventory does not show it. */
  | { readonly type: 'lookUp'; readonly slot: number; readonly instanceUuid: string };

export type ActionType = Action['type'];

/** A slot of the group: its stored state, its machine and its operation in flight. */
export interface Slot {
  readonly replica: Replica;
  readonly machine: Machine | undefined;
  readonly operating: Operating | undefined;
}

export function isReady({ replica, machine, operating }: Slot): boolean {
  const isGoingDown =
    replica.terminating ||
    replica.shutdownAt !== undefined ||
    operating?.type === 'resize' ||
    operating?.type === 'remove';
  return machine?.power === 'poweredOn' && machine.isConnected && !isGoingDown;
}

/**
 * Whether a machine was cloned from the template in the spec: the names are equal, or both names refer to the same
 * template.
 */
export function isFromTemplate({ spec }: VmGroup, { templateId }: Observed, machine: Machine): boolean {
  return machine.template === spec.template || machine.templateId === templateId;
}

export function isSized({ spec }: VmGroup, { cpus, memoryMb }: Machine): boolean {
  return cpus === spec.cpu && memoryMb === spec.memory * MB_IN_GIB;
}

/**
 * Whether a slot may have a machine that the inventory does not show, because people moved the machine out of the
 * watched folder. Such a slot is kept until a lookup by UUID proves that the machine is gone.
 */
export function mayExist({ slot, attempts = 0 }: Replica, { gone }: Observed): boolean {
  return attempts > 0 && !gone.has(slot);
}

/**
 * Whether people took a machine over: moved it out of its folder, or turned it into a template. The operator never
 * destroys it.
 */
export function isTakenOver({ isInFolder, isTemplate }: Pick<Machine, 'isInFolder' | 'isTemplate'>): boolean {
  return !isInFolder || isTemplate;
}
