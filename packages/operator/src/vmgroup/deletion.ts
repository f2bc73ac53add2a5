import type { ReconcileContext } from '@vmwright/runtime';
import type { Vcenter } from '@vmwright/vsphere';
import { moved } from './actions.ts';
import type { Location } from './locator.ts';
import { NO_MARKS } from './marks.ts';
import type { Machine, Seen } from './plan.ts';
import type { VmGroup } from './resource.ts';

/**
 * Before a group that is being deleted forgets its slots: those of which nothing shows are looked for everywhere, since
 * people may have moved a machine away. It would be nobody's.
 * @throws GroupError where one was
 */
export async function refuseIfMoved(
  { status }: VmGroup,
  { site }: Location,
  { machines, busy }: Seen,
  signal: AbortSignal,
): Promise<void> {
  const shown = new Set(machines.map(({ slot }) => slot));
  for (const { slot, name, instanceUuid, attempts, leaving } of status?.replicas ?? []) {
    if (attempts === undefined || leaving || shown.has(slot) || busy.has(slot)) continue;
    const vm = await site.vcenter.lookup.byInstanceUuid(instanceUuid, { signal });
    if (vm !== undefined) throw moved(name);
  }
}

/** Takes the marks off: what nobody asks for any more is not swept. */
export async function letGo(
  vcenter: Vcenter,
  machines: readonly Machine[],
  { assertMayAct: allow, signal }: ReconcileContext<VmGroup>,
): Promise<void> {
  for (const { id } of machines) {
    const vm = { type: 'VirtualMachine', value: id } as const;
    const task = await vcenter.machines.reconfigure(vm, { extraConfig: NO_MARKS }, { allow, signal });
    await vcenter.tasks.follow(task, { signal });
  }
}
