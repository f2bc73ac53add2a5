import { type ReconcileContext, type Requeue, requeueAfter } from '@vmwright/runtime';
import type { ChangeOptions } from '@vmwright/vsphere';
import { deletionPolicyOf, isPaused } from '../annotations.ts';
import { operationFor } from './actions.ts';
import { NO_MARKS } from './marks.ts';
import type { Operations } from './operations.ts';
import { departing, type Machine, type Seen, withTasks } from './plan.ts';
import type { VmGroup } from './resource.ts';
import type { Here, Whereabouts } from './whereabouts.ts';

export interface FinalizingOptions {
  /** Marks what is ours. */
  readonly cluster: string;
  readonly operations: Operations;
  readonly whereabouts: Whereabouts;
}

/** An annotation that goes wakes the object; this is for one whose going was missed. */
const HELD_MS = 10 * 60_000;
const LOOK_MS = 2_000;

/** What is done for a group that is being deleted: its machines go, then its folder. */
export class Finalizing {
  readonly #options: FinalizingOptions;

  constructor(options: FinalizingOptions) {
    this.#options = options;
  }

  /** Whether its user has said that it is to wait, or what nobody understands. */
  async held(group: VmGroup, { setStatus, now }: ReconcileContext<VmGroup>): Promise<Requeue | undefined> {
    const policy = deletionPolicyOf(group);
    if (typeof policy === 'object')
      await setStatus(group, departing(group, `it is not deleted: ${policy.problem}`, now()));
    return isPaused(group) || typeof policy === 'object' ? requeueAfter(HELD_MS) : undefined;
  }

  /** @returns undefined when nothing is left */
  async run(
    group: VmGroup,
    here: Here,
    { machines, busy, resting, trouble }: Seen,
    context: ReconcileContext<VmGroup>,
  ): Promise<Requeue | undefined> {
    const { key, setStatus, now, assertMayAct: allow } = context;
    const { cluster, operations, whereabouts } = this.#options;
    const isLetGo = deletionPolicyOf(group) === 'Orphan';
    if (busy.size === 0 && isLetGo) await letGo(here, machines, { allow });
    if (busy.size === 0 && (isLetGo || machines.length === 0)) {
      const isReleased = await whereabouts.release(group, here, { allow });
      if (isReleased || isLetGo) return undefined;
    }
    const idle = isLetGo ? [] : machines.filter(({ slot }) => !busy.has(slot) && !resting.has(slot));
    const beginnings = idle.flatMap(({ slot, id, power }) => {
      const turn = here.site.turns.take(key);
      if (turn === undefined) return [];
      const action = { do: 'remove', slot, id, isOn: power !== 'poweredOff' } as const;
      const operation = operationFor(action, { ...here, group, cluster, destination: undefined, allow });
      return operations.begin(key, slot, operation, turn);
    });
    await Promise.all(beginnings);
    const message = trouble?.message ?? 'its machines are being removed';
    const status = { ...departing(group, message, now()), currentReplicas: machines.length };
    await setStatus(group, withTasks(status, operations.of(key)));
    if (idle.length === 0) here.site.turns.leave(key);
    return requeueAfter(operations.againMs(key) ?? LOOK_MS);
  }
}

/** Takes the marks off: what nobody asks for any more is not swept. */
async function letGo({ site }: Here, machines: readonly Machine[], options: ChangeOptions): Promise<void> {
  const { vcenter } = site;
  for (const { id } of machines) {
    const vm = { type: 'VirtualMachine', value: id } as const;
    const task = await vcenter.machines.reconfigure(vm, { extraConfig: NO_MARKS }, options);
    await vcenter.tasks.follow(task);
  }
}
