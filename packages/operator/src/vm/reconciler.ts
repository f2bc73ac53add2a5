import type { CloudClient } from '@vmwright/cloud';
import {
  type Availability,
  JoinedSignal,
  type Reconcile,
  type ReconcileContext,
  type Result,
  requeueAfter,
} from '@vmwright/runtime';
import { deletionPolicyOf, pauseOf } from '../annotations.ts';
import { ignoreNotFound, isOutageReason, toCondition, toReconcileError } from './errors.ts';
import { NO_OWNERSHIP_LABELS } from './identity.ts';
import { ownedBesides, remainingOf, seenBy } from './observe.ts';
import { plan, type Seen, type Step } from './plan.ts';
import { VM, type VMStatus } from './resource.ts';
import type { ServerInventory } from './server-inventory.ts';
import { cloudTroubleOf, deleted, deleting, orphaned, troubled } from './status.ts';

/** While a machine is being deleted, it is looked at this often. */
const MOVING_MS = 2_000;
/** A changed annotation enqueues the object; this is a safety net. */
const HELD_MS = 10 * 60_000;
/** The end of an outage enqueues every object; this is a safety net. */
const OUTAGE_MS = 60_000;

export interface VmReconcilerOptions {
  readonly cloud: CloudClient;
  readonly inventory: ServerInventory;
  readonly availability: Availability;
  readonly cluster: string;
  /** Called when the cloud has begun to create or delete a machine. */
  readonly onMoving: () => void;
}

/** Brings one VM to its wanted state: observes, plans a step, executes it, and reports. */
export class VmReconciler {
  readonly #options: VmReconcilerOptions;

  constructor(options: VmReconcilerOptions) {
    this.#options = options;
  }

  readonly reconcile: Reconcile<VM> = (found, context) =>
    this.#reporting(found, context, async (ours, signal) => {
      let vm = found;
      for (let seen: Seen = {}; ; ) {
        const step = plan(this.#options.cluster, context.now(), vm, seen);
        if (step.do === 'tell') return this.#tell(vm, step, context);
        if (step.do === 'intend') {
          vm = await context.setStatus(vm, step.status);
          seen = { ...seen, intended: true };
        } else seen = await this.#execute(step, vm, seen, ours, { event: context.event, signal });
        if (seen.server !== undefined && 'id' in seen.server) this.#options.inventory.set(seen.server);
      }
    });

  /** Deletes the machine, and lets the object go when the cloud has none of it. */
  readonly finalize: Reconcile<VM> = async (vm, context) => {
    const { now } = context;
    const policy = deletionPolicyOf(vm);
    const hold = typeof policy === 'object' ? policy.problem : pauseOf(vm)?.message;
    if (hold !== undefined) {
      await report(vm, deleting(vm, now(), `Not deleted: ${hold}`, 'stalled'), context);
      return requeueAfter(HELD_MS);
    }
    return this.#reporting(vm, context, async (ours) => {
      const servers = await remainingOf(ours, vm, policy === 'Orphan');
      for (const { id } of servers) {
        if (policy === 'Orphan') await ignoreNotFound(ours.relabel(id, NO_OWNERSHIP_LABELS));
        else await ignoreNotFound(ours.delete(id)); // also if it was asked before: the cloud may have lost the request
      }
      if (servers.length > 0 && policy !== 'Orphan') {
        const [why = 'The cloud is deleting the machine'] = servers.flatMap(({ message }) => message ?? []);
        await report(vm, deleting(vm, now(), why), context);
        return requeueAfter(MOVING_MS);
      }
      // Without finalizers of others the object is gone with ours, and nobody reads its status any more.
      if ((vm.metadata.finalizers?.length ?? 0) > 1)
        await report(vm, (policy === 'Orphan' ? orphaned : deleted)(vm, now()), context);
      return undefined;
    });
  };

  async #execute(
    step: Exclude<Step, { readonly do: 'tell' | 'intend' }>,
    vm: VM,
    seen: Seen,
    ours: CloudClient,
    { event, signal }: Pick<ReconcileContext<VM>, 'event' | 'signal'>,
  ): Promise<Seen> {
    const { inventory, cluster, onMoving } = this.#options;
    switch (step.do) {
      case 'look':
        return { server: await inventory.get(step.id, signal) };
      case 'search':
        return { ...seen, owned: (await ownedBesides(ours, vm, step.besides)) ?? 'none' };
      case 'mark':
        return { server: (await ignoreNotFound(ours.relabel(step.id, step.labels))) ?? { gone: step.id } };
      case 'check':
        return seenBy(ours, cluster, vm, () => ours.check(step.name));
      case 'create': {
        const made = await seenBy(ours, cluster, vm, () => ours.create(step.server, step.key));
        if (made.server === undefined || 'gone' in made.server) return made;
        event(vm, { type: 'Normal', reason: 'Created', note: `Created machine ${made.server.id}` });
        onMoving();
        return made;
      }
      case 'remove':
        await ignoreNotFound(ours.delete(step.id));
        onMoving();
        return { ...seen, removed: true };
    }
  }

  async #tell(
    vm: VM,
    step: Extract<Step, { readonly do: 'tell' }>,
    context: ReconcileContext<VM>,
  ): Promise<Result> {
    const { msg, repairs } = vm.status ?? {};
    const isNews = step.status.msg !== msg || step.status.repairs !== repairs;
    if (step.event !== undefined && isNews) context.event(vm, step.event);
    await report(vm, step.status, context);
    return step.againMs === undefined ? undefined : requeueAfter(step.againMs);
  }

  /**
   * Runs work that asks the cloud, unless the cloud is known to be unavailable, and puts what prevents it into the
   * status. An outage that begins ends the requests of the work: its workers have to report the outage.
   */
  async #reporting(
    vm: VM,
    context: ReconcileContext<VM>,
    work: (ours: CloudClient, signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const { availability, cloud } = this.#options;
    const { outage } = availability;
    if (outage !== undefined) {
      await reportTrouble(vm, outage.error, context);
      return requeueAfter(OUTAGE_MS);
    }
    using joined = new JoinedSignal(context.signal, availability.outageSignal);
    const { signal } = joined;
    const ours = cloud.scoped({ signal, assertLeader: context.assertLeader });
    try {
      return await work(ours, signal);
    } catch (error) {
      await reportTrouble(vm, error, context);
      throw toReconcileError(error);
    }
  }
}

/** Puts what prevents a reconcile into the newest status known. The log has it in full, since it is thrown. */
async function reportTrouble(found: VM, error: unknown, context: ReconcileContext<VM>): Promise<void> {
  const { cache, key, now, signal, log } = context;
  const trouble = toCondition(error);
  const newest = cache(VM).get(key) ?? found; // the reconcile may have written it since
  const vm = newest.metadata.uid === found.metadata.uid ? newest : found;
  if (signal.aborted || trouble === undefined) return;
  await report(vm, troubled(vm, trouble, now()), context).catch((failure) =>
    log.debug({ error: String(failure) }, 'Writing the status failed'),
  );
}

/** Writes the status, with an event when the cloud becomes unavailable for this VM and when it is available again. */
async function report(vm: VM, status: VMStatus, context: ReconcileContext<VM>): Promise<void> {
  const [was, is] = [cloudTroubleOf(vm.status), cloudTroubleOf(status)];
  if (is !== undefined && is !== was)
    context.event(vm, { type: 'Warning', reason: is, note: status.msg ?? is });
  if (is === undefined && isOutageReason(was))
    context.event(vm, { type: 'Normal', reason: 'CloudAvailable', note: 'The cloud answers again' });
  await context.setStatus(vm, status);
}
