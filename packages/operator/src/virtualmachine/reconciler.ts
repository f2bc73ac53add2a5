import {
  conditionOf,
  type EventInput,
  type Reconcile,
  type ReconcileContext,
  type Result,
  requeueAfter,
  Secret,
} from '@vmwright/runtime';
import { isNewest } from '../kubevirt/newest.ts';
import { expansionRejection, problemOf } from './errors.ts';
import { checkName, execute } from './execute.ts';
import { secretName } from './identity.ts';
import type { ImageAccessSettings } from './image-access.ts';
import { imageRefOf } from './image-ref.ts';
import { observe } from './observe.ts';
import type { PasswordReader } from './passwords.ts';
import { type Plan, plan } from './plan.ts';
import type { PlannedCondition } from './problem.ts';
import { readDoubtfulClaim, readDoubtfulVolume } from './reads.ts';
import { VirtualMachine } from './resource.ts';
import type { SnapshotClones } from './snapshot-clones.ts';
import { hasNewIntent, problemStatus, withVolumeReady } from './status.ts';

/**
 * Retry interval after the API server rejected an action. The operator does not watch every possible cause, such as a
 * quota. So it may happen that no event reports the end of the cause.
 */
const REJECTED_RETRY_MS = 30_000;

/** Requeue interval if the newest version of the object is not in the cache yet. */
const OLD_RETRY_MS = 200;

export interface VirtualMachineReconcilerOptions extends ImageAccessSettings {
  readonly clones: SnapshotClones;
  readonly passwords: PasswordReader;
}

/** Brings one VirtualMachine to its desired state: observe, plan, execute, report. */
export class VirtualMachineReconciler {
  readonly #options: VirtualMachineReconcilerOptions;

  constructor(options: VirtualMachineReconcilerOptions) {
    this.#options = options;
  }

  readonly reconcile: Reconcile<VirtualMachine> = async (vm, context) => {
    const { clones, passwords } = this.#options;
    const volume = await readDoubtfulVolume(vm, context);
    const claim = await readDoubtfulClaim(vm, volume, context);
    const hasSecret = context.cache(Secret).get({ ...vm.metadata, name: secretName(vm) }) !== undefined;
    const read = { passwords: await passwords.read(vm, hasSecret, context), volume, claim };
    // Between `observe` and the reservation in `storeIntent`, there must be no await. Otherwise, if `maxClones` allows
    // only one more clone of a snapshot, two concurrent reconciles could both choose that snapshot.
    const observed = observe(vm, read, context, this.#options);
    const planned = plan(vm, observed, context.now());
    const stored = await storeIntent(vm, planned, context, clones);
    // If an intent was stored, `vm` was the newest version of the object: the write carried its resourceVersion.
    // Otherwise `isNewest` checks the version before the actions.
    const mayBeOld = stored === vm && planned.actions.length > 0;
    // In an address conflict, the other VirtualMachine is also checked: a newer version of it may have released the
    // address.
    const { holder } = observed.addressConflict ?? {};
    const basis = holder === undefined ? [vm] : [vm, { metadata: holder }];
    for (const object of mayBeOld ? basis : [])
      if (!(await isNewest(VirtualMachine, object, context.client))) return requeueAfter(OLD_RETRY_MS);
    return this.#execute(stored, planned, context);
  };

  async #execute(
    vm: VirtualMachine,
    { status: planned, actions, events, requeueAfterMs }: Plan,
    context: ReconcileContext<VirtualMachine>,
  ): Promise<Result> {
    const { setStatus, event, now } = context;
    const actionEvents: EventInput[] = [];
    const waits = [requeueAfterMs ?? Number.POSITIVE_INFINITY];
    let status = planned;
    for (const step of [checkName, execute]) {
      for (const action of actions) {
        try {
          const input = await step(action, vm, context);
          if (input !== undefined) actionEvents.push(input);
        } catch (error) {
          if (action.type === 'resizeClaim') {
            const condition = expansionRejection(error);
            if (condition === undefined) throw error;
            status = withVolumeReady(vm, status, condition, now());
            actionEvents.push(...rejectionEvent(vm, condition));
            waits.push(REJECTED_RETRY_MS);
            continue;
          }
          const problem = problemOf(vm, action, error);
          if (problem === undefined) throw error;
          const { reason, message: note } = problem;
          const isReported = vm.status?.message === note;
          await setStatus(vm, problemStatus(vm, status, problem, now()));
          for (const input of actionEvents) event(vm, input);
          if (!isReported) event(vm, { type: 'Warning', reason, note });
          return requeueAfter(REJECTED_RETRY_MS);
        }
      }
    }
    const reported = await setStatus(vm, status);
    for (const input of [...actionEvents, ...events]) event(reported, input);
    const waitMs = Math.min(...waits);
    return waitMs === Number.POSITIVE_INFINITY ? undefined : requeueAfter(waitMs);
  }
}

/** Returns the event about a disk that cannot grow, unless the status reports it already. */
function rejectionEvent(
  { status }: VirtualMachine,
  { reason, message: note }: PlannedCondition,
): readonly EventInput[] {
  const isReported = conditionOf(status?.conditions, 'VolumeReady')?.message === note;
  return isReported ? [] : [{ type: 'Warning', reason, note }];
}

/**
 * Stores the status before the actions if it records an intent: which snapshot is cloned to which DataVolume, or that
 * the machine is restarted. After a crash, the next reconcile continues with the same names.
 */
async function storeIntent(
  vm: VirtualMachine,
  { status }: Plan,
  { setStatus }: Pick<ReconcileContext<VirtualMachine>, 'setStatus'>,
  clones: SnapshotClones,
): Promise<VirtualMachine> {
  if (!hasNewIntent(vm.status, status)) return vm;
  const { snapshot } = status;
  const isNew = snapshot !== undefined && snapshot !== vm.status?.snapshot;
  using _ = clones.reserve(isNew ? `${imageRefOf(vm).namespace}/${snapshot}` : undefined);
  return await setStatus(vm, status);
}
