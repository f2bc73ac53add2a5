import {
  ignoreNotFound,
  type Kind,
  type KubeObject,
  keyOf,
  type Reconcile,
  type ReconcileContext,
  requeueAfter,
  Secret,
} from '@vmwright/runtime';
import { pauseOf } from '../annotations.ts';
import { auditChild } from '../kubevirt/audit.ts';
import { cascadingPolicyOf } from '../kubevirt/deletion.ts';
import { DataVolume, KubevirtInstance, KubevirtMachine, PersistentVolumeClaim } from '../kubevirt/kinds.ts';
import { controllerOf, disown, isOwnedBy } from '../kubevirt/ownership.ts';
import { remove } from '../kubevirt/remove.ts';
import { childSelector, isInstanceOf, NO_CHILD_LABELS, secretName } from './identity.ts';
import { VirtualMachine } from './resource.ts';
import { deletingStatus } from './status.ts';

/**
 * Requeue interval while children are deleted, as a safety net: their removal enqueues the VirtualMachine immediately.
 */
const WAIT_MS = 10_000;
/** Requeue interval of a deletion that an annotation blocks, as a safety net. */
const HELD_MS = 10 * 60_000;

type Context = ReconcileContext<VirtualMachine>;

/** An existing child. */
interface Child {
  readonly kind: Kind;
  readonly object: KubeObject;
}

/**
 * Deletes or orphans the children of a VirtualMachine. The finalizer stays until the children are gone. The machine is
 * deleted first, because it uses its disk and its Secret until it has stopped. Machine and Secret are read from the API
 * server: the caches contain only objects with the labels of the operator, and a user may have removed these labels.
 */
export const reconcileDelete: Reconcile<VirtualMachine> = async (vm, context) => {
  const { now, setStatus } = context;
  const policy = cascadingPolicyOf(vm);
  const hold = typeof policy === 'object' ? policy.problem : pauseOf(vm)?.message;
  if (hold !== undefined) {
    await setStatus(vm, deletingStatus(vm, `The machine is not deleted: ${hold}`, 'stalled', now()));
    return requeueAfter(HELD_MS);
  }
  if (policy === 'Orphan') {
    // The status is set although this reconcile removes the operator's finalizer: with `--cascade=orphan`, the
    // VirtualMachine exists until the finalizer `orphan` is removed, too.
    const message = 'Deleting the VirtualMachine; its machine, disk and Secret are kept without an owner';
    await setStatus(vm, deletingStatus(vm, message, 'progressing', now()));
    for (const child of [...(await machineOf(vm, context)), ...(await dataOf(vm, context))])
      if (
        await disown(child.kind, child.object, vm, context.client, {
          uid: child.object.metadata.uid,
          labels: NO_CHILD_LABELS,
        })
      )
        auditDeletion('orphan', child, vm, context);
    return undefined;
  }
  const remaining =
    (await deleteAll(await machineOf(vm, context), vm, context)) ??
    (await deleteInstance(vm, context)) ??
    (await deleteAll(await dataOf(vm, context), vm, context)) ??
    claimOf(vm, context);
  if (remaining === undefined) return undefined;
  await setStatus(
    vm,
    deletingStatus(vm, `Waiting for the deletion of the ${remaining}`, 'progressing', now()),
  );
  return requeueAfter(WAIT_MS);
};

/** Requests the deletion of children. @returns kind and key of the first child; undefined if there is none */
async function deleteAll(
  children: readonly Child[],
  vm: VirtualMachine,
  context: Context,
): Promise<string | undefined> {
  for (const child of children) {
    const { kind, object } = child;
    const { uid, resourceVersion, deletionTimestamp } = object.metadata;
    // The resourceVersion is a precondition, because the garbage collector may have removed the owner reference since
    // the read (`--cascade=orphan`).
    if (
      deletionTimestamp === undefined &&
      (await remove(context.client, kind, object.metadata, { uid, resourceVersion }))
    )
      auditDeletion('delete', child, vm, context);
  }
  const [first] = children;
  return first && describe(first);
}

/** Writes the audit line for a child. There is none for a Secret, which is not part of a machine. */
function auditDeletion(
  act: 'delete' | 'orphan',
  { kind, object: child }: Child,
  vm: VirtualMachine,
  { log }: Context,
): void {
  if (kind === Secret) return;
  auditChild(log, VirtualMachine, vm, { act, kind, child, reason: 'the VirtualMachine is being deleted' });
}

async function machineOf(vm: VirtualMachine, { client }: Context): Promise<readonly Child[]> {
  const machine = await ignoreNotFound(client.get(KubevirtMachine, vm.metadata));
  return machine !== undefined && isOwnedBy(machine, vm) ? [{ kind: KubevirtMachine, object: machine }] : [];
}

/** Returns the DataVolumes and the Secret that the VirtualMachine owns. */
async function dataOf(vm: VirtualMachine, { client, cache }: Context): Promise<readonly Child[]> {
  const { namespace = '' } = vm.metadata;
  const secret = await ignoreNotFound(client.get(Secret, { namespace, name: secretName(vm) }));
  const { items } = await client.list(DataVolume, { namespace, labelSelector: childSelector(vm) });
  const listed = new Set(items.map(({ metadata }) => metadata.uid));
  const { dataVolume = '' } = vm.status ?? {};
  const named = cache(DataVolume).get({ namespace, name: dataVolume });
  const volumes = named === undefined || listed.has(named.metadata.uid) ? items : [...items, named];
  return [
    ...volumes.map((object) => ({ kind: DataVolume, object })),
    ...(secret === undefined ? [] : [{ kind: Secret, object: secret }]),
  ].filter(({ object }) => isOwnedBy(object, vm));
}

/**
 * Requests the deletion of the instance if no KubeVirt VirtualMachine controls it.
 * @returns kind and key of the instance. Undefined if there is none, or if its KubeVirt VirtualMachine was orphaned and
 * keeps it
 */
async function deleteInstance(vm: VirtualMachine, context: Context): Promise<string | undefined> {
  const instance = await ignoreNotFound(context.client.get(KubevirtInstance, vm.metadata));
  if (instance === undefined || !isInstanceOf(instance, vm)) return undefined;
  const child = { kind: KubevirtInstance, object: instance };
  if (isAbandoned(instance)) return deleteAll([child], vm, context);
  const machine = await ignoreNotFound(context.client.get(KubevirtMachine, vm.metadata));
  // A KubeVirt VirtualMachine that has lost its owner reference (`--cascade=orphan`) keeps its instance.
  const isForeign = machine !== undefined && isOwnedBy(instance, machine) && !isOwnedBy(machine, vm);
  return isForeign ? undefined : describe(child);
}

/**
 * Whether no KubeVirt VirtualMachine controls the instance: its KubeVirt VirtualMachine was deleted with
 * `--cascade=orphan`. KubeVirt and the garbage collector delete all other instances.
 */
export function isAbandoned(instance: KubevirtInstance): boolean {
  return controllerOf(instance) === undefined;
}

/**
 * Returns the claim of the root disk if its DataVolume is gone and the garbage collector is going to delete the claim.
 */
function claimOf(vm: VirtualMachine, { cache }: Context): string | undefined {
  const { dataVolume } = vm.status ?? {};
  if (dataVolume === undefined) return undefined;
  const ref = { namespace: vm.metadata.namespace, name: dataVolume };
  const claim = cache(PersistentVolumeClaim).get(ref);
  // The garbage collector keeps a claim without an owner. It also keeps the claim of a DataVolume that still exists.
  // Such a DataVolume was not deleted, because it has lost its owner reference to the VirtualMachine.
  if (claim === undefined || controllerOf(claim)?.uid === undefined) return undefined;
  if (cache(DataVolume).get(ref)?.metadata.uid === controllerOf(claim)?.uid) return undefined;
  return describe({ kind: PersistentVolumeClaim, object: claim });
}

function describe({ kind, object }: Child): string {
  return `${kind.group === KubevirtMachine.group ? 'KubeVirt ' : ''}${kind.kind} ${keyOf(object.metadata)}`;
}
