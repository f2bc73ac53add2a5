import type { MachineDraft, RemoteMachine } from '../../remote/machine.ts';
import type { Machine, MachineStatus } from './resource.ts';
import type { Variant } from './variant.ts';

/** The mark on what these controllers create. */
export const MANAGER = 'machines.simulation-test';

/** What a reconcile has found out and done so far. */
export interface Seen {
  /** `gone`: the backend knows no such machine. */
  readonly machine?: RemoteMachine | 'gone';
  readonly looked?: boolean;
  readonly intended?: boolean;
}

/** What to do next. */
export type Step =
  | { readonly do: 'read'; readonly id: string }
  | { readonly do: 'look up'; readonly uid: string }
  | { readonly do: 'intend'; readonly status: MachineStatus }
  | { readonly do: 'create'; readonly draft: MachineDraft }
  | { readonly do: 'resize'; readonly id: string; readonly size: number }
  /** Write this, and rest; or come again when there may be news. */
  | { readonly do: 'tell'; readonly status: MachineStatus; readonly againMs?: number };

/** A machine that is being made is looked at again after so long. */
const MAKING_MS = 2_000;

/** The next step for an object that is wanted. */
export function plan(variant: Variant, { metadata, spec, status = {} }: Machine, seen: Seen): Step {
  const { uid = '', generation = 0 } = metadata;
  const { machine } = seen;
  if (machine === undefined) {
    if (status.machineId !== undefined) return { do: 'read', id: status.machineId };
    if (variant.looksUp && !seen.looked) return { do: 'look up', uid };
    if (variant.intent && !seen.intended) return intend({ ...status, phase: 'Pending' });
    const owner = { manager: MANAGER, uid };
    return { do: 'create', draft: { size: spec.size, owner, ...(variant.token && { key: uid }) } };
  }
  if (machine === 'gone' || machine.state === 'deleting')
    return { do: 'tell', status: { ...status, phase: 'Lost' } };
  const told: MachineStatus = { ...status, machineId: machine.id, size: machine.size };
  if (machine.state === 'creating')
    return { do: 'tell', status: { ...told, phase: 'Creating' }, againMs: MAKING_MS };
  if (machine.size === spec.size)
    return { do: 'tell', status: { ...told, phase: 'Ready', observedGeneration: generation } };
  // A new leader whose watch is dead knows an old spec, and would change the machine back to it.
  if (variant.intent && !seen.intended) return intend(told);
  return { do: 'resize', id: machine.id, size: spec.size };
}

/** Counted, since only a status that differs is written, and only a write is compared with what is stored. */
function intend(status: MachineStatus): Step {
  return { do: 'intend', status: { ...status, attempts: (status.attempts ?? 0) + 1 } };
}

/** Objects that may differ from what they stand for: a list that is old is good enough to wake them. */
export function drifted(objects: Iterable<Machine>, machines: readonly RemoteMachine[]): readonly Machine[] {
  const byId = new Map(machines.map((machine) => [machine.id, machine]));
  return [...objects].filter(({ spec, status }) => {
    if (status?.machineId === undefined) return false; // it is on its way by itself
    const machine = byId.get(status.machineId);
    return machine?.size !== spec.size || status.size !== spec.size || status.phase !== 'Ready';
  });
}

/** A machine is left alone for so long, by the backend's clock. */
const GRACE_MS = 2_000;

/** Machines of ours that belong to no object of these UIDs. */
export function strangers(
  { now, items }: { readonly now: number; readonly items: readonly RemoteMachine[] },
  uids: ReadonlySet<string>,
): readonly RemoteMachine[] {
  return items.filter(
    ({ owner, state, createdMs }) =>
      owner?.manager === MANAGER &&
      !uids.has(owner.uid) &&
      state !== 'deleting' &&
      now - createdMs > GRACE_MS,
  );
}
