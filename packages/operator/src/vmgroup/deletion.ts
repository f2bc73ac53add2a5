import type { ReconcileContext, World } from '@vmwright/runtime';
import type { Ref } from '@vmwright/vsphere';
import { machine, moved } from './actions.ts';
import type { Location } from './locator.ts';
import { NO_MARKS, readMarks } from './marks.ts';
import type { Seen } from './plan.ts';
import type { Replica, VmGroup } from './resource.ts';

/** Less than a reconcile has. */
const LETTING_GO_MS = 15_000;

/**
 * The machine of a slot of which nothing shows, looked for everywhere: people may have moved it away, or vCenter is late
 * in telling of it. Before a group forgets its slots, or it would be nobody's.
 */
async function hidden(
  { instanceUuid, attempts, leaving }: Replica,
  { site }: Location,
  signal: AbortSignal,
): Promise<Ref<'VirtualMachine'> | undefined> {
  if (attempts === undefined || leaving) return undefined;
  return site.vcenter.lookup.byInstanceUuid(instanceUuid, { signal });
}

/** @throws GroupError where a machine is not where the group can remove it */
export async function refuseIfMoved(
  { status }: VmGroup,
  location: Location,
  { machines, busy }: Seen,
  signal: AbortSignal,
): Promise<void> {
  const shown = new Set(machines.map(({ slot }) => slot));
  for (const replica of status?.replicas ?? []) {
    if (shown.has(replica.slot) || busy.has(replica.slot)) continue;
    if ((await hidden(replica, location, signal)) !== undefined) throw moved(replica.name);
  }
}

/**
 * Takes the marks off its machines, one after the other: what nobody asks for any more is not swept.
 * @returns those for which there was no time
 */
export async function letGo(
  group: VmGroup,
  location: Location,
  { machines }: Seen,
  { assertMayAct: allow, signal }: ReconcileContext<VmGroup>,
  world: Pick<World, 'monotonic'>,
): Promise<readonly Replica[]> {
  const { vcenter } = location.site;
  const until = world.monotonic() + LETTING_GO_MS;
  const shown = new Map(machines.map(({ slot, id }) => [slot, machine(id)]));
  const free = async (vm: Ref<'VirtualMachine'>) => {
    // One that was let go of already, by a try before this one, is nobody's.
    if ((await readMarks(vcenter, vm, { signal })) === undefined) return;
    const task = await vcenter.machines.reconfigure(vm, { extraConfig: NO_MARKS }, { allow, signal });
    await vcenter.tasks.follow(task, { signal });
  };
  const replicas = group.status?.replicas ?? [];
  for (const [at, replica] of replicas.entries()) {
    if (world.monotonic() > until) return replicas.slice(at);
    const vm = shown.get(replica.slot) ?? (await hidden(replica, location, signal));
    if (vm !== undefined) await free(vm);
    shown.delete(replica.slot);
  }
  for (const vm of shown.values()) await free(vm); // of slots that nobody knows of
  return [];
}
