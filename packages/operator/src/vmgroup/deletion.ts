import type { ReconcileContext, World } from '@vmwright/runtime';
import type { Ref } from '@vmwright/vsphere';
import { machine } from './actions.ts';
import type { Location } from './locator.ts';
import { NO_MARKS, readMarks } from './marks.ts';
import type { Replica, VmGroup } from './resource.ts';
import type { Seen } from './slots.ts';

/** Less than a reconcile has. */
const LETTING_GO_MS = 15_000;

/**
 * The machine of a slot that the inventory does not show, looked up by its UUID in all of vCenter: people may have moved
 * it out of the watched folder, or the inventory is late.
 */
async function hidden(
  { instanceUuid, attempts }: Replica,
  { site }: Location,
  signal: AbortSignal,
): Promise<Ref<'VirtualMachine'> | undefined> {
  if (attempts === undefined) return undefined;
  return site.vcenter.lookup.byInstanceUuid(instanceUuid, { signal });
}

/**
 * Takes the marks off its machines, one after the other: what nobody asks for any more is not swept.
 * @returns those for which there was no time
 */
export async function letGo(
  group: VmGroup,
  location: Location,
  { machines }: Seen,
  { assertLeader, signal }: ReconcileContext<VmGroup>,
  world: Pick<World, 'monotonic'>,
): Promise<readonly Replica[]> {
  const { vcenter } = location.site;
  const until = world.monotonic() + LETTING_GO_MS;
  const shown = new Map(machines.map(({ slot, id }) => [slot, machine(id)]));
  const free = async (vm: Ref<'VirtualMachine'>) => {
    // One that was let go of already, by a try before this one, is nobody's.
    if ((await readMarks(vcenter, vm, { signal })) === undefined) return;
    const task = await vcenter.machines.reconfigure(vm, { extraConfig: NO_MARKS }, { assertLeader, signal });
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
