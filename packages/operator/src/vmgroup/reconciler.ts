import {
  type CacheEvent,
  type Logger,
  type Permit,
  type ReconcileContext,
  type Result,
  requeueAfter,
  type Tracer,
  unlessAborted,
  type World,
} from '@vmwright/runtime';
import { deletionPolicyOf, isPaused } from '../annotations.ts';
import { type ConditionError, toCondition } from '../vcenter/errors.ts';
import { STALE_MS } from '../vcenter/health.ts';
import type { VCenterPool } from '../vcenter/vcenter-pool.ts';
import type { CloneDestination, CloneTarget } from './clone-targets.ts';
import { OtherVcenterError } from './errors.ts';
import type { GroupInFlight } from './group-in-flight.ts';
import { folderName } from './identity.ts';
import { InFlight } from './in-flight.ts';
import { NOTHING_OBSERVED, observe, observeTemplate } from './observe.ts';
import { cloneAttempt, followTask, operationFor } from './operations.ts';
import { orphanMachines } from './orphan.ts';
import { type Location, PlacementResolver, vcenterOf, withPlacement } from './placement.ts';
import { observePaused, type Plan, plan, planDeletion, withAttempts } from './plan.ts';
import { VmGroup } from './resource.ts';
import type { Action, ActionType } from './slots.ts';
import { deletingStatus, failedStatus, withTasks, withVcenterAvailable } from './status.ts';

/** Requeue interval while the group waits for a change in vCenter that causes no event. */
const RETRY_MS = 2_000;
/**
 * Requeue interval of a deletion that an annotation blocks, as a safety net: a changed annotation enqueues the group
 * immediately.
 */
const HELD_MS = 10 * 60_000;
/** Requeue interval of work that continues immediately, in another reconcile. */
const AT_ONCE_MS = 1;

export interface VmGroupReconcilerOptions {
  readonly world: World;
  readonly log: Logger;
  /** Records operations as spans. @default no tracing */
  readonly tracer?: Tracer | undefined;
  readonly vcenters: VCenterPool;
  /** Called with the key of a group when one of its operations has ended. */
  readonly enqueue: (key: string) => void;
  /** Id of this cluster in the ownership labels. */
  readonly cluster: string;
  /** Namespaces that the operator watches. @default all */
  readonly namespaces?: readonly string[] | undefined;
}

/** An action with the permit to start it. */
interface Permitted {
  readonly action: Action;
  readonly permit: Permit;
}

/** Brings one VmGroup to its desired state: observes, plans, executes, and reports. */
export class VmGroupReconciler {
  readonly #options: VmGroupReconcilerOptions;
  readonly #inFlight: InFlight;
  readonly #resolver: PlacementResolver;

  constructor(options: VmGroupReconcilerOptions) {
    this.#options = options;
    this.#inFlight = new InFlight(options);
    this.#resolver = new PlacementResolver(options);
  }

  /**
   * Forgets operations in flight and back-offs at the start of a leadership term, because another replica may have led
   * before.
   */
  startedLeading(): void {
    this.#inFlight.clear();
  }

  /** Returns the operations in flight, for debugging. */
  operations(): readonly object[] {
    return this.#inFlight.list();
  }

  /** Cancels the operations of a deleted or re-created group, because its old object is not reconciled again. */
  groupChanged(event: CacheEvent<VmGroup>): void {
    const state = this.#inFlight.find(event.key);
    const isRelevant = state !== undefined && (event.type === 'removed' || state.isBusy);
    if (!isRelevant) return; // returns before event.object is read, because each read parses a copy
    if (event.type === 'removed' || !state.isOfObject(event.object)) this.#drop(event.key, event.object);
  }

  reconcile(group: VmGroup, context: ReconcileContext<VmGroup>): Promise<Result> {
    return this.#reportErrors(group, context, async (state) => {
      const { signal, now, setStatus } = context;
      if (isPaused(group)) return this.#reconcilePaused(group, state, context);
      const location = await this.#resolver.locate(group, context);
      if (!isObservable(location)) return reportStale(group, location, context);
      this.#adoptTasks(group, location, state);
      const template = await observeTemplate(group, location, state, this.#resolver, signal);
      const planned = () => plan(group, observe(group, location, state, template), now());
      const next = planned();
      if (!next.actions.some(({ type }) => type === 'clone'))
        return this.#execute(group, location, state, next, undefined, context);
      const target = await this.#findTarget(group, location, state, signal);
      // The lookup failed, so clones back off. All other actions proceed.
      if (target === undefined) return this.#execute(group, location, state, planned(), undefined, context);
      const folder = state.claimedFolder(location.watched.child(folderName(group)));
      // Planned again, because back-offs that ended during the lookup lead to further actions.
      if (folder !== undefined)
        return this.#execute(group, location, state, planned(), { ...target, folder }, context);
      this.#recordEvents(group, state, next.errors, context);
      // The location is stored before anything is created there.
      const placed = await setStatus(group, withPlacement(next.status, location));
      await this.#claimFolder(placed, location, state, context);
      return requeueAfter(AT_ONCE_MS);
    });
  }

  reconcileDelete(group: VmGroup, context: ReconcileContext<VmGroup>): Promise<Result> {
    return this.#reportErrors(group, context, async (state) => {
      const { key, now, setStatus } = context;
      const policy = deletionPolicyOf(group);
      if (this.#hasNothingToDelete(group)) return this.#drop(key, group);
      if (isPaused(group)) {
        await this.#reconcilePaused(group, state, context);
        return requeueAfter(HELD_MS);
      }
      if (typeof policy === 'object') {
        const message = `the machines are not deleted: ${policy.problem}`;
        this.#recordEvents(group, state, [{ reason: 'InvalidDeletionPolicy', message }], context);
        const { status } = deletingStatus(group, message, now());
        await setStatus(group, withVcenterAvailable(group, status, 'unknown', now()));
        return requeueAfter(HELD_MS);
      }
      const location = await this.#resolver.locate(group, context).catch((error: unknown) => {
        if (policy === 'Orphan' && error instanceof OtherVcenterError) return 'elsewhere' as const;
        throw error;
      });
      if (location === 'elsewhere') return this.#drop(key, group);
      if (!isObservable(location)) return reportStale(group, location, context);
      this.#adoptTasks(group, location, state);
      return policy === 'Orphan'
        ? this.#orphan(group, location, state, context)
        : this.#remove(group, location, state, context);
    });
  }

  /**
   * Whether the deletion needs no vCenter. This is so in two cases:
   * - The group was not placed, and the inventory shows no machine of the group.
   * - The policy is Orphan, and the vCenter of the group is not configured.
   */
  #hasNothingToDelete(group: VmGroup): boolean {
    const vcenter = vcenterOf(this.#options.vcenters, group);
    if (vcenter === undefined && deletionPolicyOf(group) === 'Orphan') return true;
    if (group.status?.vcenter !== undefined) return false;
    // If status.vcenter is missing, the group was never placed, or a user emptied its status. Only the inventory shows
    // which.
    const { uid = '' } = group.metadata;
    return !vcenter?.folders.open.some((watched) => watched.machinesOf(uid).length > 0);
  }

  async #remove(
    group: VmGroup,
    location: Location,
    state: GroupInFlight,
    context: ReconcileContext<VmGroup>,
  ): Promise<Result> {
    const { key, now } = context;
    const observed = observe(group, location, state);
    const next = planDeletion(group, observed, 'removing the machines', now());
    const isEmpty = next.status.replicas?.length === 0 && observed.operating.size === 0;
    if (isEmpty && (await this.#resolver.releaseFolder(group, location, state, context)))
      return this.#drop(key, group);
    const result = await this.#execute(group, location, state, next, undefined, context);
    return result ?? requeueAfter(RETRY_MS);
  }

  async #orphan(
    group: VmGroup,
    location: Location,
    state: GroupInFlight,
    context: ReconcileContext<VmGroup>,
  ): Promise<Result> {
    const { key, now, setStatus } = context;
    if (state.isBusy) return requeueAfter(RETRY_MS);
    const observed = observe(group, location, state);
    const left = await orphanMachines(group, location, observed, context, this.#options.world);
    const isReleased =
      left.length === 0 && (await this.#resolver.releaseFolder(group, location, state, context));
    if (isReleased) return this.#drop(key, group);
    const remaining = { ...group, status: { ...group.status, replicas: left } };
    const { status } = deletingStatus(remaining, 'orphaning the machines', now());
    await setStatus(group, withVcenterAvailable(group, status, 'available', now()));
    return requeueAfter(left.length > 0 ? AT_ONCE_MS : RETRY_MS);
  }

  /** Observes and reports, and changes nothing. A group that was never placed has nothing to observe. */
  async #reconcilePaused(
    group: VmGroup,
    state: GroupInFlight,
    context: ReconcileContext<VmGroup>,
  ): Promise<Result> {
    const { now, setStatus } = context;
    const isPlaced = group.status?.vcenter !== undefined;
    const location = isPlaced ? await this.#resolver.locate(group, context) : undefined;
    if (isPlaced && !isObservable(location)) return reportStale(group, location, context);
    if (location !== undefined) this.#adoptTasks(group, location, state);
    const observed = location === undefined ? NOTHING_OBSERVED : observe(group, location, state);
    const status = observePaused(group, observed, now());
    const isDeleting = group.metadata.deletionTimestamp !== undefined;
    const message = `${status.currentReplicas} machines exist`;
    await setStatus(group, isDeleting ? deletingStatus({ ...group, status }, message, now()).status : status);
    return undefined;
  }

  /** Adopts in-flight tasks after a restart or a change of leader. */
  #adoptTasks(group: VmGroup, { vcenter }: Location, state: GroupInFlight): void {
    state.adopt(group.status?.replicas ?? [], ({ name, terminating, power }, task) => {
      // The task of an existing machine may be a resize, during which the machine is unavailable. So every such task is
      // treated as a resize.
      const type = terminating ? 'remove' : power === undefined ? 'clone' : 'resize';
      return [followTask(type, name, task, vcenter), vcenter.limiterFor(limitOf(type)).adopt()];
    });
  }

  /**
   * Finds the clone target. After an error that the status reports, such as a missing template, clones back off and the
   * result is undefined.
   */
  async #findTarget(
    group: VmGroup,
    location: Location,
    state: GroupInFlight,
    signal: AbortSignal,
  ): Promise<CloneTarget | undefined> {
    try {
      return await this.#resolver.target(group, location, signal);
    } catch (error) {
      cannotClone(group, location, state, error);
      return undefined;
    }
  }

  async #claimFolder(
    group: VmGroup,
    location: Location,
    state: GroupInFlight,
    context: ReconcileContext<VmGroup>,
  ): Promise<void> {
    try {
      await this.#resolver.claimFolder(group, location, state, context);
    } catch (error) {
      cannotClone(group, location, state, error);
    }
  }

  /** Stores in the status which operations start, starts them, and stores their vCenter tasks. */
  async #execute(
    group: VmGroup,
    location: Location,
    state: GroupInFlight,
    next: Plan,
    destination: CloneDestination | undefined,
    context: ReconcileContext<VmGroup>,
  ): Promise<Result> {
    const { actions, errors } = next;
    const { vcenter } = location;
    // Leadership is checked before permits are acquired. Otherwise, operations would fail immediately and release their
    // permits to other groups. The operations of those groups would fail, too, in an endless loop.
    if (actions.length > 0) context.assertLeader();
    const requeueAt = this.#requeueAt(next, state);
    this.#recordEvents(group, state, errors, context);
    const permitted = this.#acquirePermits(actions, location, context);
    try {
      const stored = await this.#storeIntent(group, location, next, permitted, context);
      await this.#start(stored, location, state, permitted, destination, context);
    } catch (error) {
      // Leaves the queues for permits: a permit that becomes free would enqueue the group before its back-off ends.
      vcenter.cancelPermits(context.key);
      throw error;
    }
    // All operations have succeeded, but the inventory does not show all results, so its changes are fetched now. While
    // a task still runs, the client pauses between fetches, so that one fetch returns the changes of several machines.
    if (state.isWaitingForInventory) vcenter.client.flush();
    const operating = state.operating();
    if (actions.every(({ slot }) => operating.has(slot))) vcenter.cancelPermits(context.key);
    if (requeueAt === undefined) return undefined;
    return requeueAfter(Math.max(AT_ONCE_MS, requeueAt - this.#options.world.monotonic()));
  }

  /**
   * Returns when to reconcile again, on the monotonic clock. Must be called before the plan is executed: after
   * that, back-offs that ended during the execution would be missing, and nothing else enqueues the group.
   */
  #requeueAt({ requeueAfterMs }: Plan, state: GroupInFlight): number | undefined {
    const times = [
      requeueAfterMs === undefined ? [] : this.#options.world.monotonic() + requeueAfterMs,
      state.nextReconcileAt() ?? [],
    ].flat();
    return times.length === 0 ? undefined : Math.min(...times);
  }

  #acquirePermits(
    actions: readonly Action[],
    { vcenter }: Location,
    { key }: ReconcileContext<VmGroup>,
  ): readonly Permitted[] {
    return actions.flatMap((action) => {
      const permit = vcenter.limiterFor(limitOf(action.type)).acquire(key);
      return permit === undefined ? [] : { action, permit };
    });
  }

  /** Stores the status before anything is started. Releases the permits if the write fails. */
  async #storeIntent(
    group: VmGroup,
    location: Location,
    { actions, status, waitingStatus }: Plan,
    permitted: readonly Permitted[],
    { key, now, setStatus }: ReconcileContext<VmGroup>,
  ): Promise<VmGroup> {
    const planned = permitted.length < actions.length ? waitingStatus : status;
    const starting = permitted.map(({ action }) => action);
    const intended = withAttempts(withPlacement(planned, location), starting, now());
    try {
      return await setStatus(group, intended);
    } catch (error) {
      // Leaves the queues for permits first. Otherwise, a permit that is released below could enqueue this group during
      // its back-off.
      location.vcenter.cancelPermits(key);
      for (const { permit } of permitted) permit.release();
      throw error;
    }
  }

  /** Starts the operations, which own their permits from here on. */
  async #start(
    group: VmGroup,
    location: Location,
    state: GroupInFlight,
    permitted: readonly Permitted[],
    destination: CloneDestination | undefined,
    { event, signal, setStatus }: ReconcileContext<VmGroup>,
  ): Promise<void> {
    if (permitted.length === 0) return;
    const { cluster } = this.#options;
    const evictTarget = () => this.#resolver.evictTarget(group, location);
    const started = permitted.map(({ action, permit }) => {
      const operation = operationFor(action, { ...location, group, cluster, destination, evictTarget });
      const reason = EVENT_REASONS[action.type];
      if (reason !== undefined) event(group, { type: 'Normal', reason, note: operation.attempt });
      return state.start(action.slot, operation, permit);
    });
    await unlessAborted(Promise.all(started), signal);
    await setStatus(group, withTasks(group.status ?? {}, state.operating()));
  }

  /** Drops the state of a group that is gone. */
  #drop(key: string, group: VmGroup): undefined {
    this.#inFlight.drop(key);
    vcenterOf(this.#options.vcenters, group)?.cancelPermits(key);
  }

  /**
   * Records one Warning event per cause, even if the operation is retried often.
   * @returns the errors that are reported for the first time
   */
  #recordEvents(
    group: VmGroup,
    state: GroupInFlight,
    errors: readonly ConditionError[],
    { event, now }: ReconcileContext<VmGroup>,
    retryMs = this.#nextRetryMs(state),
  ): readonly ConditionError[] {
    const unreported = state.unreported(errors);
    const retry = retryMs === undefined ? '' : `; next retry at ${timeText(now() + retryMs)}`;
    for (const { reason, message } of unreported)
      event(group, { type: 'Warning', reason, note: `${message}${retry}` });
    return unreported;
  }

  #nextRetryMs(state: GroupInFlight): number | undefined {
    const now = this.#options.world.monotonic();
    const left = state.backoffs.failures().flatMap(({ until }) => (until > now ? until - now : []));
    return left.length === 0 ? undefined : Math.min(...left);
  }

  /**
   * Reports errors that users or administrators can act on: writes them to the status, records one event and one log
   * line per cause, and retries later. Rethrows all other errors: the controller logs and retries them.
   */
  async #reportErrors(
    group: VmGroup,
    context: ReconcileContext<VmGroup>,
    work: (state: GroupInFlight) => Promise<Result>,
  ): Promise<Result> {
    const { key, fence, signal, now, log, cache, setStatus } = context;
    const state = this.#inFlight.of(key, group, fence);
    try {
      const result = await work(state);
      state.backoffs.reset({ of: 'group' });
      return result;
    } catch (error) {
      const condition = toCondition(error, vcenterOf(this.#options.vcenters, group)?.name ?? '');
      if (condition === undefined || signal.aborted) throw error;
      const retryMs = state.backoffs.start({ of: 'group' }, { error, attempt: '' });
      const unreported = this.#recordEvents(group, state, [condition], context, retryMs);
      const level = condition.isUnknown ? 'debug' : 'warn'; // `VcenterHealth` logs an outage once for all groups
      for (const { reason, message } of unreported)
        log[level]({ reason, error: message, retryInMs: Math.round(retryMs) }, 'Reconciling VmGroup failed');
      const cached = cache(VmGroup).get(group.metadata); // newer than `group` if the reconcile has written the status
      const isSame = cached !== undefined && cached.metadata.uid === group.metadata.uid;
      const latest = isSame ? cached : group;
      await setStatus(latest, failedStatus(latest, condition, now())).catch((failure) =>
        log.debug({ error: String(failure) }, 'Writing the status failed'),
      );
      return requeueAfter(retryMs);
    }
  }
}

/** Makes clones back off after an error that the status reports. @throws any other error */
function cannotClone(group: VmGroup, { vcenter }: Location, state: GroupInFlight, error: unknown): void {
  if (toCondition(error, vcenter.name) === undefined) throw error;
  state.backoffs.start({ of: 'clones' }, { error, attempt: cloneAttempt(group) });
}

/**
 * Whether the inventory is current. False during an outage, even before the call that waits for inventory changes has
 * timed out.
 */
function isObservable(location: Location | undefined): location is Location {
  return location?.watched.isLive === true && !location.vcenter.health.isDown;
}

/**
 * Requeues the group until the inventory is current. Writes a first status for a group that has none.
 * @throws VcenterOutageError after `STALE_MS`
 */
async function reportStale(
  group: VmGroup,
  location: Location | undefined,
  { setStatus, now }: ReconcileContext<VmGroup>,
): Promise<Result> {
  const isOutage =
    location !== undefined && (location.vcenter.health.isDown || location.watched.staleMs > STALE_MS);
  if (isOutage) throw location.vcenter.health.outage();
  if (group.status?.phase === undefined) await setStatus(group, failedStatus(group, CONNECTING, now()));
  return requeueAfter(RETRY_MS);
}

const CONNECTING: ConditionError = {
  reason: 'Connecting',
  message: 'waiting for the inventory of vCenter',
  isUnknown: true,
  isProgressing: true,
};

/** Formats a time to the second. */
function timeText(ms: number): string {
  return new Date(Math.ceil(ms / 1_000) * 1_000).toISOString().replace('.000', '');
}

function limitOf(type: ActionType): 'clone' | 'other' {
  return type === 'clone' ? 'clone' : 'other';
}

/** Reasons of the events about started operations. Lookups change nothing, so no event is recorded for them. */
const EVENT_REASONS: Readonly<Record<ActionType, string | undefined>> = {
  lookUp: undefined,
  clone: 'Cloning',
  powerOn: 'PoweringOn',
  reconfigure: 'Reconfiguring',
  shutDown: 'ShuttingDown',
  resize: 'Resizing',
  remove: 'Removing',
};
