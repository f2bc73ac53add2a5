import { MB_IN_GIB } from './memory.ts';
import type { Replica, VmGroup } from './resource.ts';
import type { Trouble } from './trouble.ts';

/** A machine of the group, as vCenter shows it. */
export interface Machine {
  readonly slot: number;
  /** Present name in vCenter; people can rename a machine. */
  readonly name: string;
  /** Its reference in vCenter. */
  readonly id: string;
  readonly power: 'poweredOn' | 'poweredOff' | 'suspended';
  /** Whether vCenter has to do with it: not while its host does not respond, or its files cannot be reached. */
  readonly isConnected: boolean;
  /** False for a machine that people moved to another folder below the watched one. */
  readonly isInFolder: boolean;
  /** True for a machine that people turned into a template. */
  readonly isTemplate: boolean;
  readonly cpus: number;
  readonly memoryMb: number;
  /** What it was cloned from, in the words of the spec of then, and the same in vCenter's. */
  readonly template: string;
  readonly templateId: string;
  /** What can be added while it runs. */
  readonly canAdd: { readonly cpus: boolean; readonly memoryUpToMb: number };
  readonly ip?: string | undefined;
  readonly host?: string | undefined;
}

/** What a reconcile has found. */
export interface Seen {
  readonly machines: readonly Machine[];
  /** What is being done to a slot, or was and does not show yet. */
  readonly busy: ReadonlyMap<number, Doing>;
  /** Slots to which something could not be done; they are left alone for a while. */
  readonly resting: ReadonlySet<number>;
  /** Clones could not be made; none is tried for a while. */
  readonly isCloningAtRest: boolean;
  /** Slots whose machines vCenter does not let be what is wanted; for a while they run on as they are. */
  readonly inVain: ReadonlySet<number>;
  /** Slots that have no machine left anywhere in vCenter: it was destroyed, or a lookup by UUID found none. */
  readonly gone: ReadonlySet<number>;
  /** Machines that a lookup by UUID found outside the watched folder: their names by slot. */
  readonly movedAway: ReadonlyMap<number, string>;
  /** The wanted template, in vCenter's words, as it was found last. */
  readonly templateId?: string | undefined;
  /** Whether it has just been found. */
  readonly isTemplateThere?: boolean | undefined;
  /** Why operations failed that have not succeeded since; the newest last. */
  readonly troubles: readonly Trouble[];
}

export interface Doing {
  readonly what: Action['do'];
  /** vCenter's task. */
  readonly task?: string | undefined;
}

/** What is to be done to the machine of a slot. */
export type Action =
  | {
      readonly do: 'clone';
      readonly slot: number;
      readonly name: string;
      readonly instanceUuid: string;
      /** Whether vCenter was asked for it before, and may have made it somewhere. */
      readonly again: boolean;
    }
  | { readonly do: 'powerOn'; readonly slot: number; readonly id: string }
  | { readonly do: 'reconfigure'; readonly slot: number; readonly id: string }
  /** Its guest is asked to; what comes then is seen. */
  | { readonly do: 'shutDown'; readonly slot: number; readonly id: string }
  /** Off, changed, and on again, whether or not vCenter lets it be changed: what cannot be added while it runs. */
  | { readonly do: 'resize'; readonly slot: number; readonly id: string; readonly isOn: boolean }
  | { readonly do: 'remove'; readonly slot: number; readonly id: string; readonly isOn: boolean }
  /** Looks a terminating machine that the inventory does not show up by its UUID, in all of vCenter. */
  | { readonly do: 'lookUp'; readonly slot: number; readonly instanceUuid: string };

/** A slot of the group: what is stored of it, its machine and the operation in flight. */
export interface Slot {
  readonly replica: Replica;
  readonly machine: Machine | undefined;
  readonly doing: Doing | undefined;
}

export function isReady({ replica, machine, doing }: Slot): boolean {
  const isGoingDown =
    replica.leaving ||
    replica.shutdownAt !== undefined ||
    doing?.what === 'resize' ||
    doing?.what === 'remove';
  return machine?.power === 'poweredOn' && machine.isConnected && !isGoingDown;
}

/** Matches the template's name, or its reference where the same template is written in another way. */
export function isFromTemplate({ spec }: VmGroup, { templateId }: Seen, machine: Machine): boolean {
  return machine.template === spec.template || machine.templateId === templateId;
}

export function isSized({ spec }: VmGroup, { cpus, memoryMb }: Machine): boolean {
  return cpus === spec.cpu && memoryMb === spec.memory * MB_IN_GIB;
}

/**
 * Whether vCenter may have a machine of a slot that the inventory does not show: people can move a machine out of the
 * watched folder. Such a slot is kept until a lookup by UUID proves that the machine is gone.
 */
export function mayExist({ slot, attempts = 0 }: Replica, { gone }: Seen): boolean {
  return attempts > 0 && !gone.has(slot);
}

/** Whether people took a machine over; such a machine is never destroyed. */
export function isHeld({ isInFolder, isTemplate }: Pick<Machine, 'isInFolder' | 'isTemplate'>): boolean {
  return !isInFolder || isTemplate;
}
