import type { MachineDraft, RemoteMachine } from '../../remote/machine.ts';
import type { Machine, MachineStatus } from './resource.ts';
import type { Variant } from './variant.ts';

/** Manager name in the ownership labels of the machines that the sample controller creates. */
export const MANAGER = 'machines.simulation-test';

/** Observations and completed steps of a reconcile. */
export interface Observed {
  /** `gone`: the backend returned 404. */
  readonly machine?: RemoteMachine | 'gone';
  readonly looked?: boolean;
  readonly intended?: boolean;
}

/** The next step of a reconcile. */
export type Step =
  | { readonly do: 'read'; readonly id: string }
  | { readonly do: 'look up'; readonly uid: string }
  | { readonly do: 'intend'; readonly status: MachineStatus }
  | { readonly do: 'create'; readonly draft: MachineDraft }
  | { readonly do: 'resize'; readonly id: string; readonly size: number }
  /** Writes the status and ends the reconcile, optionally with a requeue. */
  | { readonly do: 'report'; readonly status: MachineStatus; readonly requeueAfterMs?: number };

/** Requeue interval while a machine is being created. */
const CREATING_MS = 2_000;

/** Returns the next step for an object that is not being deleted. */
export function plan(variant: Variant, { metadata, spec, status = {} }: Machine, observed: Observed): Step {
  const { uid = '', generation = 0 } = metadata;
  const { machine } = observed;
  if (machine === undefined) {
    if (status.machineId !== undefined) return { do: 'read', id: status.machineId };
    if (variant.looksUp && !observed.looked) return { do: 'look up', uid };
    if (variant.intent && !observed.intended) return intend({ ...status, phase: 'Pending' });
    const owner = { manager: MANAGER, uid };
    return { do: 'create', draft: { size: spec.size, owner, ...(variant.token && { key: uid }) } };
  }
  if (machine === 'gone' || machine.state === 'deleting')
    return { do: 'report', status: { ...status, phase: 'Lost' } };
  const reported: MachineStatus = { ...status, machineId: machine.id, size: machine.size };
  if (machine.state === 'creating')
    return { do: 'report', status: { ...reported, phase: 'Creating' }, requeueAfterMs: CREATING_MS };
  if (machine.size === spec.size)
    return { do: 'report', status: { ...reported, phase: 'Ready', observedGeneration: generation } };
  // Also stores an intent before a resize, because this write fails if the cached object is outdated. Otherwise, a new
  // leader with a stalled watch would resize the machine back to the size in an outdated spec.
  if (variant.intent && !observed.intended) return intend(reported);
  return { do: 'resize', id: machine.id, size: spec.size };
}

/**
 * Returns the step that stores an intent. Increments `attempts`, because only a changed status is written,
 * and only a write checks the resourceVersion.
 */
function intend(status: MachineStatus): Step {
  return { do: 'intend', status: { ...status, attempts: (status.attempts ?? 0) + 1 } };
}

/** Returns the objects that may differ from their machines. They are only enqueued, so an outdated list suffices. */
export function drifted(objects: Iterable<Machine>, machines: readonly RemoteMachine[]): readonly Machine[] {
  const byId = new Map(machines.map((machine) => [machine.id, machine]));
  return [...objects].filter(({ spec, status }) => {
    if (status?.machineId === undefined) return false; // a reconcile is already pending
    const machine = byId.get(status.machineId);
    return machine?.size !== spec.size || status.size !== spec.size || status.phase !== 'Ready';
  });
}

/** Minimum age of an orphan in milliseconds, by the backend's clock. */
const GRACE_MS = 2_000;

/**
 * Returns the machines of this manager with an owner that is not in `uids`. Leaves out machines that are being deleted
 * or are younger than `GRACE_MS`.
 */
export function orphans(
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
