import { replaceRequestOf } from '../annotations.ts';
import type { ConditionError } from '../vcenter/errors.ts';
import type { VmGroup, VmGroupStatus } from './resource.ts';
import { isReady, isTakenOver, type Observed, type Slot } from './slots.ts';

export type Replacing = NonNullable<VmGroupStatus['replacing']>;

/** Result of a request to replace machines. */
export interface Replacement {
  readonly slots: readonly Slot[];
  /** The request, and the slots of the machines that are still to be replaced. */
  readonly replacing: Replacing | undefined;
  /** Errors about names in the request that match no machine of the group. */
  readonly errors: readonly ConditionError[];
}

/** Whether a user has requested to replace machines, and not all of them are replaced yet. */
export function isReplacing(group: VmGroup): boolean {
  const request = replaceRequestOf(group);
  const { replacing } = group.status ?? {};
  return request !== undefined && (replacing?.request !== request || replacing.slots.length > 0);
}

/**
 * Terminates the machines that a user asked to replace (annotation `vmwright.dev/replace`), within maxUnavailable.
 *
 * When a request is first observed, it is resolved to slots, and these slots are stored. So a machine that later gets
 * the same slot or name is not replaced again. To repeat a request, a user removes the annotation and sets it again.
 * @param budget how many more machines may become unavailable
 */
export function replaceRequested(
  group: VmGroup,
  observed: Observed,
  slots: readonly Slot[],
  budget: number,
): Replacement {
  const request = replaceRequestOf(group);
  if (request === undefined) return { slots, replacing: undefined, errors: [] };
  const { replacing } = group.status ?? {};
  const isNew = replacing?.request !== request;
  const names = isNew ? namesIn(request) : [];
  const pending = new Set(isNew ? slots.filter(matches(names)).map(numberOf) : replacing.slots);
  const canReplace = observed.isTemplateFound === true && !observed.areClonesBackingOff;
  let left = budget;
  const replaced = slots.map((slot) => {
    const { machine, replica } = slot;
    if (!pending.has(replica.slot)) return slot;
    // A slot without a machine gets a new machine anyway, and a machine that people took over is never removed.
    const isDone = replica.terminating === true || machine === undefined || isTakenOver(machine);
    if (!isDone && (!canReplace || observed.backingOff.has(replica.slot) || (isReady(slot) && left-- <= 0)))
      return slot;
    pending.delete(replica.slot);
    return isDone ? slot : { ...slot, replica: { ...replica, terminating: true } };
  });
  const existing = new Set(slots.map(numberOf));
  return {
    slots: replaced,
    replacing: { request, slots: [...pending].filter((slot) => existing.has(slot)) },
    errors: unknownIn(names, slots),
  };
}

function namesIn(request: string): readonly string[] {
  return request
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

function matches(names: readonly string[]): (slot: Slot) => boolean {
  return ({ replica, machine }) =>
    [String(replica.slot), replica.name, machine?.name].some(
      (name) => name !== undefined && names.includes(name),
    );
}

function numberOf({ replica: { slot } }: Slot): number {
  return slot;
}

function unknownIn(names: readonly string[], slots: readonly Slot[]): readonly ConditionError[] {
  const unknown = names.filter((name) => !slots.some(matches([name])));
  if (unknown.length === 0) return [];
  const list = unknown.map((name) => `'${name}'`).join(', ');
  return [
    {
      reason: 'UnknownMachine',
      message: `the annotation vmwright.dev/replace names ${list}, but the group has no such machine; correct the annotation`,
    },
  ];
}
