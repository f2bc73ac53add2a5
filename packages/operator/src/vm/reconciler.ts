import type { CloudClient } from '@vmwright/cloud';
import {
  type Availability,
  JoinedSignal,
  NotFoundError,
  type Reconcile,
  type ReconcileContext,
  type Result,
  requeueAfter,
} from '@vmwright/runtime';
import { deletionPolicyOf, pauseOf } from '../annotations.ts';
import { type Act, audit } from '../audit.ts';
import { type ConditionError, ignoreNotFound, isAccepted, toCondition, toReconcileError } from './errors.ts';
import { NO_OWNERSHIP_LABELS } from './identity.ts';
import { findOwned, type Observed, observeAnswer, remainingServers } from './observe.ts';
import { type Action, plan } from './plan.ts';
import { CHANGING_MS } from './polling.ts';
import { VM, type VMStatus } from './resource.ts';
import type { ServerInventory } from './server-inventory.ts';
import {
  deletedStatus,
  deletingStatus,
  errorStatus,
  isCloudUnavailable,
  isReported,
  orphanedStatus,
  withCloudAvailable,
} from './status.ts';

/**
 * Requeue interval of a deletion that an annotation blocks, as a safety net: a changed annotation enqueues the VM
 * immediately.
 */
const HELD_MS = 10 * 60_000;
/** Requeue interval during an outage, as a safety net: the end of the outage enqueues every object. */
const OUTAGE_MS = 60_000;

export interface VmReconcilerOptions {
  readonly cloud: CloudClient;
  readonly inventory: Pick<ServerInventory, 'get' | 'set'>;
  readonly availability: Pick<Availability, 'outage' | 'outageSignal'>;
  /** Id of this cluster in the ownership labels. */
  readonly cluster: string;
  /** Called when the cloud has begun to create or delete a machine. */
  readonly onChanging: () => void;
}

/** Brings one VM to its desired state: observe, plan, execute, report. */
export class VmReconciler {
  readonly #options: VmReconcilerOptions;

  constructor(options: VmReconcilerOptions) {
    this.#options = options;
  }

  readonly reconcile: Reconcile<VM> = (found, context) =>
    this.#withCloud(found, context, async (cloud, signal) => {
      let vm = found;
      let observed: Observed = { cluster: this.#options.cluster };
      for (;;) {
        const { status, actions, event, requeueAfterMs } = plan(vm, observed, context.now());
        vm = await setStatus(vm, status, context);
        if (actions.length === 0) {
          if (event !== undefined) context.event(vm, event);
          return requeueAfterMs === undefined ? undefined : requeueAfter(requeueAfterMs);
        }
        for (const action of actions)
          observed = await this.#execute(action, vm, observed, cloud, context, signal);
      }
    });

  /** Deletes or orphans the machine. The finalizer stays until the cloud has no machine of the VM. */
  readonly reconcileDelete: Reconcile<VM> = async (vm, context) => {
    const { now } = context;
    const policy = deletionPolicyOf(vm);
    const hold = typeof policy === 'object' ? policy.problem : pauseOf(vm)?.message;
    if (hold !== undefined) {
      const status = deletingStatus(vm, now(), `The machine is not deleted: ${hold}`, 'stalled');
      await setStatus(vm, withCloudAvailable(vm, status, this.#outage, now()), context);
      return requeueAfter(HELD_MS);
    }
    return this.#withCloud(vm, context, async (cloud) => {
      const servers = await remainingServers(cloud, vm, policy === 'Orphan');
      for (const server of servers) {
        const { id, state } = server;
        const act = policy === 'Orphan' ? 'orphan' : 'delete';
        // Every reconcile requests the deletion again, because the cloud may have lost the last request.
        const change = act === 'orphan' ? cloud.relabel(id, NO_OWNERSHIP_LABELS) : cloud.delete(id);
        if ((await isAccepted(change)) && (act === 'orphan' || state !== 'deleting'))
          auditServer(context, vm, act, server, 'the VM is being deleted');
      }
      if (servers.length > 0 && policy !== 'Orphan') {
        const [cause = 'The cloud is deleting the machine'] = servers.flatMap(({ message }) => message ?? []);
        const status = deletingStatus(vm, now(), cause);
        await setStatus(vm, withCloudAvailable(vm, status, undefined, now()), context);
        return requeueAfter(CHANGING_MS);
      }
      // Writes the status only if another finalizer keeps the object. Otherwise the removal of this controller's
      // finalizer deletes the object immediately.
      if ((vm.metadata.finalizers?.length ?? 0) > 1)
        await setStatus(vm, (policy === 'Orphan' ? orphanedStatus : deletedStatus)(vm, now()), context);
      return undefined;
    });
  };

  async #execute(
    action: Action,
    vm: VM,
    observed: Observed,
    cloud: CloudClient,
    context: Pick<ReconcileContext<VM>, 'event' | 'log'>,
    signal: AbortSignal,
  ): Promise<Observed> {
    const { inventory, onChanging } = this.#options;
    const { cluster } = observed;
    switch (action.type) {
      case 'get':
        return { cluster, server: await inventory.get(action.id, signal) };
      case 'findOwned':
        return { ...observed, owned: (await findOwned(cloud, vm, action.except)) ?? 'none' };
      case 'checkName':
        return this.#remember(await observeAnswer(cloud, cluster, vm, () => cloud.check(action.name)));
      case 'relabel': {
        const server = await ignoreNotFound(cloud.relabel(action.id, action.labels));
        if (server !== undefined)
          auditServer(context, vm, 'reconfigure', server, 'its ownership labels differ');
        return this.#remember({ cluster, server: server ?? { gone: action.id }, isRelabelled: true });
      }
      case 'create': {
        const send = () => cloud.create(action.server, action.key);
        const created = this.#remember(await observeAnswer(cloud, cluster, vm, send));
        if (created.server === undefined || 'gone' in created.server) return created;
        const note = `Created machine ${created.server.id}`;
        context.event(vm, { type: 'Normal', reason: 'Created', note });
        auditServer(context, vm, 'create', created.server, 'the VM has no machine');
        onChanging();
        return created;
      }
      case 'delete':
        if (await isAccepted(cloud.delete(action.id)))
          auditServer(context, vm, 'delete', action, 'it has failed and is replaced');
        onChanging();
        return { ...observed, isDeleted: true };
    }
  }

  /** Stores the observed server in the inventory. */
  #remember(observed: Observed): Observed {
    if (observed.server !== undefined && 'id' in observed.server)
      this.#options.inventory.set(observed.server);
    return observed;
  }

  /**
   * Runs work that sends requests to the cloud, and reports errors of these requests in the status. During an outage,
   * the work does not run, and the status reports the outage. If an outage begins during the work, its requests are
   * aborted, so that the outage is reported soon.
   */
  async #withCloud(
    vm: VM,
    context: ReconcileContext<VM>,
    work: (cloud: CloudClient, signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const { availability, cloud } = this.#options;
    const { outage } = availability;
    if (outage !== undefined) {
      await reportError(vm, this.#outage, context);
      return requeueAfter(OUTAGE_MS);
    }
    using joined = new JoinedSignal(context.signal, availability.outageSignal);
    const { signal } = joined;
    const scoped = cloud.scoped({ signal, assertLeader: context.assertLeader });
    try {
      return await work(scoped, signal);
    } catch (error) {
      await reportError(vm, toCondition(error), context);
      throw toReconcileError(error);
    }
  }

  get #outage(): ConditionError | undefined {
    const { outage } = this.#options.availability;
    const error = outage && toCondition(outage.error);
    // During an outage, no list request succeeds. If the cloud rejects these requests as invalid, `toCondition` alone
    // would not report an outage.
    return error && { ...error, isOutage: true };
  }
}

function auditServer(
  { log }: Pick<ReconcileContext<VM>, 'log'>,
  { metadata, spec }: VM,
  act: Act,
  { id: machine }: { readonly id: string },
  reason: string,
): void {
  const machineName = spec.vmname;
  audit(log, { kind: VM.kind, metadata }, { act, resource: 'Server', machine, machineName, reason });
}

/**
 * Returns a reconcile that reports a deletion in the status, without a request to the cloud.
 *
 * The reconcile runs in a separate controller: if the cloud hangs, all workers of the controller that deletes machines
 * may be waiting for it. Both controllers write with a resourceVersion precondition, so neither overwrites the status
 * of the other.
 * @param finalizer finalizer of the controller that deletes machines. A VM without this finalizer has no machine any
 * more
 */
export function reportDeletion(finalizer: string): Reconcile<VM> {
  return async (vm, { setStatus, now }) => {
    const { deletionTimestamp, finalizers = [] } = vm.metadata;
    const { opStatus } = vm.status ?? {};
    if (deletionTimestamp === undefined || !finalizers.includes(finalizer)) return;
    if (opStatus === 'Deleting' || opStatus === 'Deleted') return;
    try {
      await setStatus(vm, deletingStatus(vm, now(), 'Deleting the machine'));
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error; // NotFound is ignored: the object is already gone
    }
  };
}

/**
 * Writes the error to the newest known status. Records an event if the status did not report the error yet. Does not
 * log the error, because the controller logs thrown errors and `Availability` logs outages.
 */
async function reportError(
  found: VM,
  error: ConditionError | undefined,
  context: ReconcileContext<VM>,
): Promise<void> {
  const { cache, key, now, signal, log, event } = context;
  const newest = cache(VM).get(key) ?? found; // newer than `found` if this reconcile has written the status
  const vm = newest.metadata.uid === found.metadata.uid ? newest : found;
  if (signal.aborted || error === undefined) return;
  try {
    const status = errorStatus(vm, error, now());
    await setStatus(vm, status, context);
    const { reason } = error;
    if (!isReported(vm.status, error)) event(vm, { type: 'Warning', reason, note: status.msg ?? reason });
  } catch (failure) {
    log.debug({ error: String(failure) }, 'Writing the status failed');
  }
}

/**
 * Stores the status. Records an event if the previous status reported an outage of the cloud and the new one does not.
 */
async function setStatus(vm: VM, status: VMStatus, context: ReconcileContext<VM>): Promise<VM> {
  const stored = await context.setStatus(vm, status);
  if (isCloudUnavailable(vm.status) && !isCloudUnavailable(status))
    context.event(vm, { type: 'Normal', reason: 'CloudAvailable', note: 'The cloud answers again' });
  return stored;
}
