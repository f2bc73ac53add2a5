import type { ReconcileContext, World } from '@vmwright/runtime';
import type { Ref } from '@vmwright/vsphere';
import { audit } from '../audit.ts';
import { instanceUuid, NO_OWNERSHIP, readOwnership } from '../vcenter/ownership.ts';
import { machineRef } from './machines.ts';
import type { Location } from './placement.ts';
import { type Replica, VmGroup } from './resource.ts';
import type { Observed } from './slots.ts';

/** Time after which a reconcile stops orphaning machines; shorter than the timeout of the reconcile. */
const BUDGET_MS = 15_000;

/**
 * Removes the ownership labels from the group's machines, one after the other, so that garbage collection ignores them.
 * @returns the replicas that are left for the next reconcile
 */
export async function orphanMachines(
  group: VmGroup,
  location: Location,
  { machines }: Observed,
  { assertLeader, signal, log }: ReconcileContext<VmGroup>,
  world: Pick<World, 'monotonic'>,
): Promise<readonly Replica[]> {
  const { client } = location.vcenter;
  const until = world.monotonic() + BUDGET_MS;
  const listed = new Map(machines.map(({ slot, id }) => [slot, machineRef(id)]));
  const replicas = group.status?.replicas ?? [];
  const nameOf = (slot: number) => replicas.find((replica) => replica.slot === slot)?.name;
  const orphan = async (vm: Ref<'VirtualMachine'>) => {
    const ownership = await readOwnership(client, vm, { signal });
    // Nothing to remove: an earlier attempt orphaned the machine, or it belongs to another group.
    if (ownership === undefined || ownership.uid !== group.metadata.uid) return;
    const task = await client.machines.reconfigure(
      vm,
      { extraConfig: NO_OWNERSHIP },
      { assertLeader, signal },
    );
    const { metadata } = group;
    const reason = 'the VmGroup is being deleted';
    audit(
      log,
      { kind: VmGroup.kind, metadata },
      {
        act: 'orphan',
        resource: 'VirtualMachine',
        machine: instanceUuid(ownership.uid, ownership.slot),
        machineName: nameOf(ownership.slot),
        reason,
        task: task.value,
      },
    );
    await client.tasks.follow(task, { signal });
  };
  for (const [index, replica] of replicas.entries()) {
    if (world.monotonic() > until) return replicas.slice(index);
    const vm = listed.get(replica.slot) ?? (await unlisted(group, replica, location, signal));
    if (vm !== undefined) await orphan(vm);
    listed.delete(replica.slot);
  }
  for (const vm of listed.values()) await orphan(vm); // machines whose slots are missing from the status
  return [];
}

/**
 * Looks up a machine that the inventory does not list, by its UUID in the whole vCenter. People may have moved the
 * machine out of the watched folder, or the inventory may be outdated.
 */
async function unlisted(
  { metadata: { uid = '' } }: VmGroup,
  { slot, attempts }: Replica,
  { vcenter }: Location,
  signal: AbortSignal,
): Promise<Ref<'VirtualMachine'> | undefined> {
  if (attempts === undefined) return undefined;
  // Derives the UUID instead of reading it from the status, which users can edit.
  return vcenter.client.lookup.byInstanceUuid(instanceUuid(uid, slot), { signal });
}
