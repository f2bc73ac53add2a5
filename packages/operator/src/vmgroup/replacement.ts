import { replaceRequestOf } from '../annotations.ts';
import type { VmGroup, VmGroupStatus } from './resource.ts';
import { isHeld, isReady, type Seen, type Slot } from './slots.ts';
import type { Trouble } from './trouble.ts';

export type Replacing = NonNullable<VmGroupStatus['replacing']>;

/** Slots after a person's request to replace machines, and what is left of the request. */
export interface Replaced {
  readonly slots: readonly Slot[];
  readonly replacing: Replacing | undefined;
  /** Names in the request that are no machines of the group. */
  readonly troubles: readonly Trouble[];
}

/** Whether machines wait to be replaced at a person's request. */
export function isReplacing(group: VmGroup): boolean {
  const request = replaceRequestOf(group);
  const { replacing } = group.status ?? {};
  return request !== undefined && (replacing?.request !== request || replacing.slots.length > 0);
}

/**
 * Marks machines that a person wants replaced as leaving, as many at a time as may be unavailable.
 *
 * A request is resolved to slots once, when it is first seen, and stored: a machine that later gets the same slot or name
 * is not replaced again. The same request can be made again after the annotation was removed.
 * @param budget how many more machines may become unavailable
 */
export function replaceRequested(
  group: VmGroup,
  seen: Seen,
  slots: readonly Slot[],
  budget: number,
): Replaced {
  const request = replaceRequestOf(group);
  if (request === undefined) return { slots, replacing: undefined, troubles: [] };
  const { replacing } = group.status ?? {};
  const isNew = replacing?.request !== request;
  const names = isNew ? namesIn(request) : [];
  const pending = new Set(isNew ? slots.filter(matches(names)).map(numberOf) : replacing.slots);
  const canReplace = seen.isTemplateThere === true && !seen.isCloningAtRest;
  let left = budget;
  const replaced = slots.map((slot) => {
    const { machine, replica } = slot;
    if (!pending.has(replica.slot)) return slot;
    // A slot without a machine gets a new one anyway; a machine that people took over is theirs.
    const isOver = replica.leaving === true || machine === undefined || isHeld(machine);
    if (!isOver && (!canReplace || seen.resting.has(replica.slot) || (isReady(slot) && left-- <= 0)))
      return slot;
    pending.delete(replica.slot);
    return isOver ? slot : { ...slot, replica: { ...replica, leaving: true } };
  });
  const present = new Set(slots.map(numberOf));
  return {
    slots: replaced,
    replacing: { request, slots: [...pending].filter((slot) => present.has(slot)) },
    troubles: unknownIn(names, slots),
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

function unknownIn(names: readonly string[], slots: readonly Slot[]): readonly Trouble[] {
  const unknown = names.filter((name) => !slots.some(matches([name])));
  if (unknown.length === 0) return [];
  const list = unknown.map((name) => `'${name}'`).join(', ');
  return [
    {
      reason: 'UnknownMachine',
      message: `the annotation vmwright.dev/replace names ${list}, and the group has no such machine`,
    },
  ];
}
