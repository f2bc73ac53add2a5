import type { Fence, KubeObject, Logger, Permit, Tracer, World } from '@vmwright/runtime';
import type { ChangeOptions, Ref } from '@vmwright/vsphere';
import type { Act } from '../audit.ts';
import { type ConditionError, ReportedError } from '../vcenter/errors.ts';
import { instanceUuid } from '../vcenter/ownership.ts';
import { Backoffs, type BackoffTarget } from './backoffs.ts';
import { OperationCancelledError, ResizeRejectedError } from './errors.ts';
import { OperationLog } from './operation-log.ts';
import { type Replica, VmGroup } from './resource.ts';
import type { ActionType, Operating } from './slots.ts';

/**
 * Called when vCenter has accepted a change of a machine.
 * @param task the vCenter task; undefined if there is none, as for the shutdown of a guest
 * @param act the change, for the audit log; undefined for a task that an earlier process or leader started
 */
export type OnAct = (task: Ref<'Task'> | undefined, act: Act | undefined) => void;

/** An operation on the machine of a slot, from the first request to the end of its last vCenter task. */
export interface Operation {
  readonly type: ActionType;
  /** Name of the machine, for log lines. */
  readonly machine: string;
  /** Description of the operation for messages, such as "powering on machine x". */
  readonly attempt: string;
  /** Why the operation is needed, for the audit log. */
  readonly reason: string;
  /**
   * Runs the operation to its end.
   * @param onAct called each time vCenter has accepted a change
   * @param scope signal and fence of the operation, to be passed to every call
   */
  readonly run: (onAct: OnAct, scope: ChangeOptions) => Promise<void>;
  /** Returns whether the inventory shows the result. */
  readonly isVisible: () => boolean;
  /** Returns, after success, whether the operation proved that vCenter has no machine of the slot. @default false */
  readonly provesGone?: () => boolean;
}

export interface GroupInFlightOptions {
  readonly world: Pick<World, 'monotonic' | 'random' | 'after'>;
  readonly log: Logger;
  /** Records operations as spans. @default no tracing */
  readonly tracer?: Tracer | undefined;
  readonly enqueue: (key: string) => void;
  readonly key: string;
  readonly group: VmGroup;
  readonly term: Fence;
}

interface Running extends Operating {
  readonly machine: string;
  /** When the operation started, on the monotonic clock. */
  readonly startedAt: number;
  /**
   * Once the fence is closed, the operation sends no more requests. The fence closes when the operation ends or is
   * cancelled, or when the leadership term ends.
   */
  readonly fence: Fence;
  task: string | undefined;
  /** When the operation succeeded. The slot stays busy until the inventory shows the result. */
  succeededAt: number | undefined;
  readonly isVisible: () => boolean;
}

/**
 * Time to wait until the inventory shows a result. After that, the group is planned again as if the operation had had
 * no effect.
 */
const VISIBLE_WITHIN_MS = 30_000;
/** Back-off after a rejected size. It is long, because each attempt powers the machine off. */
const RESIZE_REJECTED = { baseMs: 10 * 60_000, maxMs: 10 * 60_000 };
const RESIZE_FAILED = { baseMs: 30_000, maxMs: 10 * 60_000 };
/**
 * Time after which a running task releases its permit to other groups. An unanswered question or a lost datastore, for
 * example, can keep a task running.
 */
const PERMIT_MS = 10 * 60_000;
/** Time that the inventory may take to show a claimed folder. Until then, a missing folder does not count as gone. */
const CLAIM_VISIBLE_WITHIN_MS = 10_000;

/**
 * State of one group between reconciles. A reconcile starts operations without waiting for their end. The end of an
 * operation enqueues the group.
 *
 * Guarantees:
 * - A slot has at most one operation at a time. After a success, the next operation starts when the inventory shows the
 *   result, or after 30 s.
 * - Failed operations are retried with exponential back-off. A machine that powers off repeatedly is also powered on
 *   with exponential back-off.
 * - When its leadership term ends or its group is dropped, an operation is cancelled and sends nothing more.
 */
export class GroupInFlight {
  readonly backoffs: Backoffs;
  readonly #options: Omit<GroupInFlightOptions, 'group'>;
  readonly #running = new Map<number, Running>();
  /** Slots for which an operation proved that vCenter has no machine. */
  readonly #gone = new Set<number>();
  /** Metadata of the group as last reconciled. */
  #metadata: KubeObject['metadata'];
  #size: string;
  #template: { readonly name: string; readonly id: string } | undefined;
  #claim: { readonly folder: Ref<'Folder'>; readonly at: number } | undefined;
  #reported: ReadonlySet<string> = new Set();
  #isAdopted = false;

  constructor({ group, ...options }: GroupInFlightOptions) {
    this.#options = options;
    this.#metadata = group.metadata;
    this.#size = sizeOf(group);
    this.backoffs = new Backoffs(options.world);
  }

  /** Returns whether this state belongs to the given object and the given leadership term. */
  isOf(group: VmGroup, term: Fence): boolean {
    return this.#options.term === term && this.isOfObject(group);
  }

  /** Returns whether this state belongs to the given object. An earlier object with the same name has another UID. */
  isOfObject({ metadata }: VmGroup): boolean {
    return this.#metadata.uid === metadata.uid;
  }

  /** Whether any operation is in flight. */
  get isBusy(): boolean {
    return this.operating().size > 0;
  }

  /**
   * Resets the back-offs when the spec has changed. The back-offs of resizes are reset only when the size has changed.
   */
  specObserved(group: VmGroup): void {
    const isSameSpec = this.#metadata.generation === group.metadata.generation;
    this.#metadata = group.metadata;
    if (isSameSpec) return;
    const isSameSize = this.#size === sizeOf(group);
    this.#size = sizeOf(group);
    this.backoffs.resetAll(isSameSize ? 'size' : undefined);
  }

  /**
   * Adopts the vCenter tasks in the status, which an earlier process or leader started. Only the first call adopts
   * tasks.
   */
  adopt(
    replicas: readonly Replica[],
    adopted: (replica: Replica, task: string) => [Operation, Permit],
  ): void {
    if (this.#isAdopted) return;
    this.#isAdopted = true;
    for (const replica of replicas)
      if (replica.task !== undefined) void this.start(replica.slot, ...adopted(replica, replica.task));
  }

  /** Returns the operations in flight by slot. */
  operating(): ReadonlyMap<number, Operating> {
    const now = this.#options.world.monotonic();
    for (const [slot, { succeededAt, isVisible }] of this.#running)
      if (succeededAt !== undefined && (isVisible() || now - succeededAt > VISIBLE_WITHIN_MS))
        this.#running.delete(slot);
    return this.#running;
  }

  /** Returns the operations in flight, for debugging. */
  list(): readonly object[] {
    const { world, key } = this.#options;
    const now = world.monotonic();
    return [...this.#running].map(([slot, { type, machine, task, startedAt, succeededAt }]) => ({
      object: key,
      slot,
      operation: type,
      machine,
      task,
      forMs: Math.round(now - startedAt),
      isWaitingForInventory: succeededAt !== undefined,
    }));
  }

  /** Whether vCenter has finished all operations, but the inventory does not show all results yet. */
  get isWaitingForInventory(): boolean {
    if (!this.isBusy) return false;
    return this.#running.values().every(({ succeededAt }) => succeededAt !== undefined);
  }

  /**
   * Returns the slots for which an operation proved that vCenter has no machine.
   * @param listed slots with a machine in the inventory; they no longer count as gone
   */
  gone(listed: Iterable<number>): ReadonlySet<number> {
    for (const slot of listed) this.#gone.delete(slot);
    return this.#gone;
  }

  /** Returns when the group needs a reconcile even without an event, on the monotonic clock. */
  nextReconcileAt(): number | undefined {
    const now = this.#options.world.monotonic();
    const times = [
      ...this.backoffs.ends(),
      ...[...this.#running.values()].flatMap(({ succeededAt }) =>
        succeededAt === undefined ? [] : succeededAt + VISIBLE_WITHIN_MS + 1,
      ),
    ].filter((time) => time > now);
    return times.length === 0 ? undefined : Math.min(...times);
  }

  /** Reference of the template in the spec, as it was last found. */
  templateId({ spec }: VmGroup): string | undefined {
    return this.#template?.name === spec.template ? this.#template.id : undefined;
  }

  templateFound({ spec }: VmGroup, id: string): void {
    this.#template = { name: spec.template, id };
    this.backoffs.reset({ of: 'template' });
  }

  folderClaimed(folder: Ref<'Folder'>): void {
    this.#claim = { folder, at: this.#options.world.monotonic() };
  }

  get lastClaimedFolder(): Ref<'Folder'> | undefined {
    return this.#claim?.folder;
  }

  /**
   * Returns the claimed folder; undefined if none was claimed, or if it is gone or was replaced since.
   * @param listed the group's folder in the inventory
   */
  claimedFolder(listed: Ref<'Folder'> | undefined): Ref<'Folder'> | undefined {
    if (this.#claim === undefined) return undefined;
    const { folder, at } = this.#claim;
    const isNew = this.#options.world.monotonic() - at < CLAIM_VISIBLE_WITHIN_MS;
    const exists = listed === undefined ? isNew : listed.value === folder.value;
    return exists ? folder : undefined;
  }

  /**
   * Returns the errors that were not reported yet. So each cause leads to one event and one log line, even if the
   * operation is retried often. A cause that disappeared and comes back is reported again.
   */
  unreported(errors: readonly ConditionError[]): readonly ConditionError[] {
    const causes = new Map(
      errors
        .filter(({ isProgressing }) => !isProgressing)
        .map((error) => [`${error.reason}\n${error.message}`, error]),
    );
    const before = this.#reported;
    this.#reported = new Set(causes.keys());
    return [...causes].flatMap(([cause, error]) => (before.has(cause) ? [] : error));
  }

  /**
   * Starts an operation, which takes ownership of the permit and releases it.
   * @returns a promise that resolves when vCenter has started a task, or when the operation has ended
   */
  start(slot: number, operation: Operation, permit: Permit): Promise<void> {
    const { world, key, enqueue, term, tracer } = this.#options;
    const { type, machine, attempt, isVisible, provesGone } = operation;
    const fence = term.nested();
    const running: Running = {
      type,
      machine,
      isVisible,
      fence,
      startedAt: world.monotonic(),
      task: undefined,
      succeededAt: undefined,
    };
    const log = new OperationLog(this.#options, {
      ...operation,
      object: { kind: VmGroup.kind, metadata: this.#metadata },
      machineId: instanceUuid(this.#metadata.uid ?? '', slot),
    });
    this.#running.set(slot, running);
    this.#gone.delete(slot);
    const started = Promise.withResolvers<void>();
    const onAct: OnAct = (task, act) => {
      log.acted(task?.value, act);
      if (task === undefined) return;
      running.task = task.value;
      started.resolve();
    };
    const permitTimer = world.after(PERMIT_MS, () => permit.release());
    const end = () => {
      const isCancelled = !fence.isOpen;
      permitTimer.cancel();
      fence.close();
      running.task = undefined;
      permit.release();
      started.resolve();
      // A cancelled operation does not enqueue the group. Otherwise, after the lease has expired, each reconcile would
      // fail and enqueue the group again without a pause. This loop would keep the timer that ends the leadership term
      // from firing.
      if (!isCancelled) enqueue(key);
    };
    const targets = targetsOf(type, slot);
    for (const target of targets.all) this.backoffs.setRetrying(target, true);
    // The result of a cancelled operation is ignored, because it says nothing about vCenter or the machine.
    const counts = () => fence.isOpen && this.#running.get(slot) === running;
    const scope = { signal: fence.signal, assertLeader: () => fence.assertOpen() };
    // The operation gets its own span, because it outlives the reconcile that starts it.
    const run = () => operation.run(onAct, scope);
    (tracer?.span(`vmgroup ${type}`, { 'k8s.object.name': key, 'machine.name': machine }, run) ?? run()).then(
      () => {
        running.succeededAt = world.monotonic();
        log.succeeded();
        if (counts()) {
          if (provesGone?.()) this.#gone.add(slot);
          if (type === 'powerOn') this.backoffs.start(targets.slot, undefined);
          else for (const target of targets.all) this.backoffs.reset(target);
        }
        end();
      },
      (error: unknown) => {
        if (counts()) {
          for (const target of targets.all) this.backoffs.setRetrying(target, false);
          log.failed(...this.#failed(error, attempt, targets));
        }
        this.#running.delete(slot);
        end();
      },
    );
    return started.promise;
  }

  /** Cancels all operations. */
  cancel(): void {
    for (const { fence } of this.#running.values()) fence.close(new OperationCancelledError());
    this.#running.clear();
  }

  #failed(error: unknown, attempt: string, targets: Targets): [error: unknown, retryInMs: number] {
    if (error instanceof ResizeRejectedError) {
      const { cause, retryable } = error;
      const options = retryable ? RESIZE_FAILED : RESIZE_REJECTED;
      return [cause, this.backoffs.start(targets.size, { error: cause, attempt }, options)];
    }
    // A ReportedError concerns one machine, so only its slot backs off. Any other error of a clone delays all clones.
    const target = error instanceof ReportedError ? targets.slot : targets.operation;
    return [error, this.backoffs.start(target, { error, attempt })];
  }
}

interface Targets {
  readonly slot: BackoffTarget;
  readonly size: BackoffTarget;
  /** Target that backs off when the operation fails. */
  readonly operation: BackoffTarget;
  /** Targets that stop backing off when the operation succeeds, unless the operation is a power-on. */
  readonly all: readonly BackoffTarget[];
}

function targetsOf(type: ActionType, number: number): Targets {
  const slot: BackoffTarget = { of: 'slot', slot: number };
  const size: BackoffTarget = { of: 'size', slot: number };
  const operation: BackoffTarget = type === 'clone' ? { of: 'clones' } : slot;
  const isSizeChange = type === 'resize' || type === 'reconfigure';
  return { slot, size, operation, all: isSizeChange ? [slot, size] : [slot, operation] };
}

function sizeOf({ spec }: VmGroup): string {
  return `${spec.cpu} ${spec.memory}`;
}
