import type { ReconcileContext } from '@vmwright/runtime';
import type { Ref } from '@vmwright/vsphere';
import { machine, moved } from './actions.ts';
import type { Location } from './locator.ts';
import { NO_MARKS, readMarks } from './marks.ts';
import type { Seen } from './plan.ts';
import type { VmGroup } from './resource.ts';

interface Hidden {
  readonly name: string;
  readonly vm: Ref<'VirtualMachine'>;
}

/**
 * Before a group that is being deleted forgets its slots: those of which nothing shows are looked for everywhere. People
 * may have moved a machine away, or vCenter is late in telling of it.
 */
async function hiddenOf(
  { status }: VmGroup,
  { site }: Location,
  { machines, busy }: Seen,
  signal: AbortSignal,
): Promise<readonly Hidden[]> {
  const shown = new Set(machines.map(({ slot }) => slot));
  const hidden: Hidden[] = [];
  for (const { slot, name, instanceUuid, attempts, leaving } of status?.replicas ?? []) {
    if (attempts === undefined || leaving || shown.has(slot) || busy.has(slot)) continue;
    const vm = await site.vcenter.lookup.byInstanceUuid(instanceUuid, { signal });
    if (vm !== undefined) hidden.push({ name, vm });
  }
  return hidden;
}

/** One that does not show would be nobody's. @throws GroupError */
export async function refuseIfMoved(
  group: VmGroup,
  location: Location,
  seen: Seen,
  signal: AbortSignal,
): Promise<void> {
  const [first] = await hiddenOf(group, location, seen, signal);
  if (first !== undefined) throw moved(first.name);
}

/** Takes the marks off all of its machines: what nobody asks for any more is not swept. */
export async function letGo(
  group: VmGroup,
  location: Location,
  seen: Seen,
  { assertMayAct: allow, signal }: ReconcileContext<VmGroup>,
): Promise<void> {
  const { vcenter } = location.site;
  const { machines, tasks } = vcenter;
  const hidden = await hiddenOf(group, location, seen, signal);
  for (const vm of [...seen.machines.map(({ id }) => machine(id)), ...hidden.map(({ vm }) => vm)]) {
    // One that was let go of already, by a try before this one, is nobody's.
    if ((await readMarks(vcenter, vm, { signal })) === undefined) continue;
    const task = await machines.reconfigure(vm, { extraConfig: NO_MARKS }, { allow, signal });
    await tasks.follow(task, { signal });
  }
}
