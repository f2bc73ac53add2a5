import type { Seen, Slot } from './slots.ts';
import { GroupError, type Trouble } from './trouble.ts';

/** A machine of the group is outside the watched folder. It is reported together with all others that people moved. */
export class MovedError extends GroupError {
  readonly machine: string;

  constructor(machine: string) {
    super(movedTrouble([machine]));
    this.machine = machine;
  }
}

/** People turned a machine of the group into a template. */
export class IsTemplateError extends GroupError {
  constructor(machine: string) {
    super(templateTrouble([machine]));
  }
}

/** Longer lists do not fit into a condition's message. */
const MOST_NAMES = 100;

/** What to report about machines that people took over, in the order of their slots: the same text on every retry. */
export function heldTrouble(slots: readonly Slot[], { movedAway }: Seen): Trouble | undefined {
  const moved = slots.flatMap(({ replica, machine }) => {
    if (machine !== undefined) return machine.isInFolder ? [] : machine.name;
    return movedAway.get(replica.slot) ?? [];
  });
  if (moved.length > 0) return movedTrouble(moved);
  const templates = slots.flatMap(({ machine }) => (machine?.isTemplate ? machine.name : []));
  return templates.length > 0 ? templateTrouble(templates) : undefined;
}

function movedTrouble(names: readonly string[]): Trouble {
  const isOne = names.length === 1;
  return {
    reason: 'Moved',
    message: `${listed(names)} ${isOne ? 'is' : 'are'} no longer in the group's folder; move ${isOne ? 'it' : 'them'} back, or delete ${isOne ? 'it' : 'them'}`,
  };
}

function templateTrouble(names: readonly string[]): Trouble {
  const isOne = names.length === 1;
  return {
    reason: 'IsTemplate',
    message: `${listed(names)} ${isOne ? 'was turned into a template' : 'were turned into templates'}; convert ${isOne ? 'it' : 'them'} back to ${isOne ? 'a virtual machine' : 'virtual machines'}, or delete ${isOne ? 'it' : 'them'}`,
  };
}

function listed(names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMES).map((name) => `'${name}'`);
  const more = names.length > MOST_NAMES ? ` and ${names.length - MOST_NAMES} more` : '';
  return `${names.length === 1 ? 'machine' : 'machines'} ${shown.join(', ')}${more}`;
}
