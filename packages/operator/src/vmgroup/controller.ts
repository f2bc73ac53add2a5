import {
  annotationsChanged,
  any,
  type CacheEvent,
  type Channel,
  type Fence,
  generationChanged,
  keyOf,
  type Logger,
  type Manager,
  Poller,
  type ReconcileContext,
  type Result,
  requeueAfter,
  statusChanged,
  unlessAborted,
  type World,
} from '@vmwright/runtime';
import { deletionPolicyOf, isPaused } from '../annotations.ts';
import { operationFor, taken, wordsOf } from './actions.ts';
import { Announcements } from './announcements.ts';
import { letGo } from './deletion.ts';
import { BLIND_MS } from './health.ts';
import { MovedError } from './held.ts';
import { Liveness } from './liveness.ts';
import { ElsewhereError, type Location, Locator, placed } from './locator.ts';
import { machinesOf } from './machines.ts';
import { Operations } from './operations.ts';
import { attempting, observePaused, type Plan, plan, planDeletion } from './plan.ts';
import { isReplacing } from './replacement.ts';
import { VmGroup } from './resource.ts';
import type { Sites } from './sites.ts';
import type { Action, Seen } from './slots.ts';
import { departing, troubled, withTasks } from './status.ts';
import type { Destination } from './targets.ts';
import { type Trouble, troubleOf } from './trouble.ts';
import type { Turn } from './turns.ts';
import { waitingForSlot } from './waiting.ts';

export const FINALIZER = 'vmwright.dev/vmgroup';

const LOOK_MS = 2_000;
/** An annotation that goes wakes the object; this is for one whose going was missed. */
const HELD_MS = 10 * 60_000;
/** A vCenter that hangs keeps nobody's groups from being looked at for longer. */
const TIMEOUT_MS = 30_000;

export interface VmGroupControllerOptions {
  readonly world: World;
  readonly log: Logger;
  readonly sites: Sites;
  /** Told, by who makes the sites, of the groups to look at. */
  readonly wakes: Channel;
  /** Marks what is ours. */
  readonly cluster: string;
  /** Those we look at. @default all */
  readonly namespaces?: readonly string[] | undefined;
  readonly concurrency: number;
}

/**
 * Machines from templates, on vSphere.
 *
 * Guarantees: one machine a slot at every moment, whatever crashes and whatever is lost: name and UUID are fixed by group
 * and slot, the slot is stored over the very version that was read before vCenter is asked, and vCenter has no name
 * twice in a folder. A machine is removed only after it was stored that it leaves. What is not the group's by UUID and
 * mark is neither counted nor touched. A group goes when none of its machines is left.
 */
export function controlVmGroups(manager: Manager, options: VmGroupControllerOptions): void {
  const { world, log, sites, wakes, concurrency } = options;
  const groups = manager.caches.get(VmGroup);
  const liveness = new Liveness(sites);
  const poller = new Poller({
    world,
    everyMs: LOOK_MS,
    poll: async () => {
      const changed = liveness.changed();
      sites.keepRoots(groups.list());
      if (changed.size === 0) return [];
      return [...groups.list()]
        .filter((group) => changed.has(sites.find(group)))
        .map(({ metadata }) => keyOf(metadata));
    },
    onError: (error) => log.warn({ error: String(error) }, 'the vCenters could not be looked at'),
  });
  const vmGroups = new VmGroups(options);
  groups.subscribe((event) => vmGroups.changed(event));
  manager.control({
    for: VmGroup,
    // Also where others change the status: it is restored at once.
    predicate: any(generationChanged, annotationsChanged, statusChanged),
    concurrency,
    // Not longer: a vCenter that is back after an hour is not to be waited for.
    backoff: { maxMs: 60_000 },
    resyncMs: 5 * 60_000,
    timeoutMs: TIMEOUT_MS,
    onStartedLeading: () => vmGroups.forget(),
    sources: [wakes.source, poller.source],
    reconcile: (group, context) => vmGroups.reconcile(group, context),
    finalizer: { name: FINALIZER, finalize: (group, context) => vmGroups.finalize(group, context) },
  });
}

/** What is remembered of a group from one look to the next. */
interface Known {
  readonly uid: string;
  /** Of the term in which it was met: in another one, tasks may run that another replica has begun. */
  readonly term: Fence;
  readonly generation: number | undefined;
  readonly size: string;
  /** What its template was found to be, by the name that it had in the spec. */
  template?: { readonly name: string; readonly id: string };
}

/** A plan, with when it is to be looked at again, on the monotonic clock. */
interface Timed extends Omit<Plan, 'againMs'> {
  readonly againAt: number;
}

/** What was decided on, and the right to begin with it. */
interface Granted {
  readonly action: Action;
  readonly turn: Turn;
}

class VmGroups {
  readonly #options: VmGroupControllerOptions;
  readonly #operations: Operations;
  readonly #locator: Locator;
  readonly #announcements = new Announcements();
  /** The groups whose tasks of before are followed, by key. */
  readonly #known = new Map<string, Known>();

  constructor(options: VmGroupControllerOptions) {
    const { world, wakes, log } = options;
    this.#options = options;
    this.#operations = new Operations({ world, log, wake: (group) => wakes.enqueue(group) });
    this.#locator = new Locator(options);
  }

  /** Drops all state at the start of a term: another replica may have led since it was gathered. */
  forget(): void {
    this.#operations.clear();
    this.#announcements.clear();
    this.#locator.forget();
    this.#known.clear();
  }

  /** Cancels the operations of a group that is gone, or that was re-created: no reconcile comes for the old one. */
  changed(event: CacheEvent<VmGroup>): void {
    const known = this.#known.get(event.key);
    if (known === undefined) return;
    const isBusy = event.type === 'removed' || this.#operations.of(event.key).size > 0;
    if (!isBusy) return;
    const { object } = event;
    if (event.type === 'removed' || object.metadata.uid !== known.uid) this.#gone(object, event.key);
  }

  reconcile(group: VmGroup, context: ReconcileContext<VmGroup>): Promise<Result> {
    return this.#telling(group, context, async () => {
      if (isPaused(group)) return this.#observePaused(group, context);
      const location = await this.#locator.locate(group, context);
      if (location === undefined || !location.root.isLive) return blindly(group, location, context);
      const { key, now, setStatus } = context;
      let found = group;
      this.#meet(group, location, context);
      const template = await this.#templateOf(group, location, context);
      const think = () =>
        this.#timed(plan(found, this.#look(found, location, key, template), now()), context);
      let next = think();
      let destination: Destination | undefined;
      if (next.actions.some((action) => action.do === 'clone'))
        try {
          destination = await this.#locator.destination(found, location, context, async () => {
            // All else is told when it is so.
            found = await setStatus(found, placed(found.status ?? {}, location));
          });
        } catch (error) {
          if (troubleOf(error, location.site.name) === undefined) throw error;
          // What else there is to do does not wait for a template, or a folder.
          this.#operations.cannotClone(key, { error, words: wordsOf(found) });
          next = think();
        }
      return this.#carryOut(found, location, next, destination, context);
    });
  }

  finalize(group: VmGroup, context: ReconcileContext<VmGroup>): Promise<Result> {
    return this.#telling(group, context, async () => {
      const { key, now, setStatus } = context;
      const policy = deletionPolicyOf(group);
      const site = this.#options.sites.find(group);
      // Without a placement there is nothing, unless others emptied the status. On an unknown vCenter machines stay.
      const { uid = '' } = group.metadata;
      const hasMachines = site?.roots.open.some((root) => root.machinesOf(uid).length > 0) ?? false;
      const isNowhere =
        (group.status?.vcenter === undefined && !hasMachines) || (site === undefined && policy === 'Orphan');
      if (isNowhere) return this.#gone(group, key);
      if (isPaused(group)) {
        await this.#observePaused(group, context);
        return requeueAfter(HELD_MS);
      }
      if (typeof policy === 'object') {
        const message = `it is not deleted: ${policy.problem}`;
        this.#announce(group, [{ reason: 'InvalidDeletionPolicy', message }], context);
        await setStatus(group, departing(group, message, now()));
        return requeueAfter(HELD_MS);
      }
      const location = await this.#locator.locate(group, context).catch((error: unknown) => {
        if (policy === 'Orphan' && error instanceof ElsewhereError) return 'elsewhere' as const;
        throw error;
      });
      if (location === 'elsewhere') return this.#gone(group, key);
      if (location === undefined || !location.root.isLive) return blindly(group, location, context);
      this.#meet(group, location, context);
      const seen = this.#look(group, location, key);
      if (policy === 'Orphan') {
        if (seen.busy.size > 0) return requeueAfter(LOOK_MS);
        const left = await letGo(group, location, seen, context, this.#options.world);
        const isFree = left.length === 0 && (await this.#locator.release(group, location, context));
        if (isFree) return this.#gone(group, key);
        const status = { ...group.status, replicas: left };
        await setStatus(group, departing({ ...group, status }, 'its machines are let go of', now()));
        return requeueAfter(left.length > 0 ? 1 : LOOK_MS);
      }
      const next = this.#timed(planDeletion(group, seen, 'its machines are being removed', now()), context);
      const isEmpty = next.status.replicas?.length === 0 && seen.busy.size === 0;
      if (isEmpty && (await this.#locator.release(group, location, context))) return this.#gone(group, key);
      const again = await this.#carryOut(group, location, next, undefined, context);
      return again ?? requeueAfter(LOOK_MS);
    });
  }

  /** Reports what there is, and changes nothing. A group that was never placed has nothing to observe. */
  async #observePaused(group: VmGroup, context: ReconcileContext<VmGroup>): Promise<Result> {
    const { key, now, setStatus } = context;
    let seen = NOTHING;
    if (group.status?.vcenter !== undefined) {
      const location = await this.#locator.locate(group, context);
      if (location === undefined || !location.root.isLive) return blindly(group, location, context);
      this.#meet(group, location, context);
      seen = this.#look(group, location, key);
    }
    const status = observePaused(group, seen, now());
    const isDeleting = group.metadata.deletionTimestamp !== undefined;
    const message = `${status.currentReplicas} machines exist`;
    await setStatus(group, isDeleting ? departing({ ...group, status }, message, now()) : status);
    return undefined;
  }

  /**
   * The wanted template, in vCenter's words, where machines are from one that is called otherwise: it may be the same, and
   * none of them goes before it is found.
   */
  async #templateOf(
    group: VmGroup,
    location: Location,
    { key, signal }: ReconcileContext<VmGroup>,
  ): Promise<Pick<Seen, 'templateId' | 'isTemplateThere'>> {
    const { site, root } = location;
    const { template } = group.spec;
    const isSame = machinesOf(site, root, group).every((machine) => machine.template === template);
    const isAsBefore = isSame && !isReplacing(group);
    if (isAsBefore) return {};
    const known = this.#known.get(key);
    const found = known?.template?.name === template ? { templateId: known.template.id } : {};
    if (this.#operations.isLookingAtRest(key)) return found;
    // What was found by this name lately, for others, may be another by now.
    if (found.templateId === undefined) this.#locator.forgetTarget(group, location);
    try {
      const target = await this.#locator.target(group, location, signal);
      const id = target.template.value;
      if (known !== undefined) known.template = { name: template, id };
      this.#operations.looked(key);
      return { templateId: id, isTemplateThere: true };
    } catch (error) {
      if (troubleOf(error, site.name) === undefined) throw error;
      this.#operations.looked(key, { error, words: wordsOf(group) });
      return found;
    }
  }

  /** Stores what is about to be done, and begins with it. */
  async #carryOut(
    group: VmGroup,
    location: Location,
    { status, actions, againAt, troubles }: Timed,
    destination: Destination | undefined,
    context: ReconcileContext<VmGroup>,
  ): Promise<Result> {
    const { key, setStatus, now } = context;
    const { site } = location;
    // A failure here is retried after a back-off; operations that fail at once would pass their turns round without end.
    if (actions.length > 0) context.assertLeader();
    this.#announce(group, troubles, context);
    const granted = actions.flatMap((action) => {
      const turn = site.turnsFor(action.do).take(key);
      return turn === undefined ? [] : { action, turn };
    });
    try {
      const isWaiting = granted.length < actions.length;
      const intended = attempting(
        placed(isWaiting ? waitingForSlot(status) : status, location),
        granted.map(({ action }) => action),
        now(),
      );
      const stored = await setStatus(group, intended);
      await this.#begin(stored, location, granted, destination, context);
    } catch (error) {
      site.leaveTurns(key); // or its own turns, given back, would wake it at once, past its back-off
      throw error;
    } finally {
      for (const { turn } of granted) turn.end();
    }
    // Not while more is done: what is told then, now and then, is told of many together.
    if (this.#operations.isWaitingToShow(key)) location.site.vcenter.flush();
    const busy = this.#operations.of(key);
    if (actions.every(({ slot }) => busy.has(slot))) site.leaveTurns(key);
    if (!Number.isFinite(againAt)) return undefined;
    return requeueAfter(Math.max(1, againAt - this.#options.world.monotonic()));
  }

  /** Those that were begun are taken out of the list: their turns end with them. */
  async #begin(
    group: VmGroup,
    location: Location,
    granted: Granted[],
    destination: Destination | undefined,
    context: ReconcileContext<VmGroup>,
  ): Promise<void> {
    const { key, setStatus, event, signal, fence } = context;
    const { cluster } = this.#options;
    const beginnings = granted.splice(0).map(({ action, turn }) => {
      const operation = operationFor(action, { ...location, group, cluster, destination });
      const reason = REASONS[action.do];
      if (reason !== undefined) event(group, { type: 'Normal', reason, note: operation.words });
      return this.#operations.begin(key, action.slot, operation, turn, fence);
    });
    if (beginnings.length === 0) return;
    await unlessAborted(Promise.all(beginnings), signal);
    await setStatus(group, withTasks(group.status ?? {}, this.#operations.of(key)));
  }

  /** Computed when the plan is made: a rest that ends while the plan is carried out enqueues nothing. */
  #timed({ againMs = Number.POSITIVE_INFINITY, ...next }: Plan, { key }: ReconcileContext<VmGroup>): Timed {
    const nextAt = this.#operations.nextLookAt(key) ?? Number.POSITIVE_INFINITY;
    const monotonic = this.#options.world.monotonic();
    return {
      ...next,
      againAt: Math.min(monotonic + againMs, nextAt),
    };
  }

  /** Adopts in-flight tasks of a group that is new in this term; resets back-off when the generation changes. */
  #meet(group: VmGroup, { site }: Location, { key, fence: term }: ReconcileContext<VmGroup>): void {
    const { uid = '', generation } = group.metadata;
    const size = `${group.spec.cpu} ${group.spec.memory}`;
    const known = this.#known.get(key);
    if (known?.uid === uid && known.term === term) {
      if (known.generation === generation) return;
      this.#known.set(key, { ...known, generation, size });
      this.#operations.forgive(key, { isSizeSame: known.size === size });
      return;
    }
    this.#known.set(key, { uid, term, generation, size });
    this.#operations.forget(key);
    for (const { slot, name, task, leaving, power } of group.status?.replicas ?? []) {
      if (task === undefined) continue;
      // Of a machine that is there it may be a restart: then it is away.
      const what = leaving ? 'remove' : power === undefined ? 'clone' : 'resize';
      const operation = taken(what, { name, task }, { site });
      void this.#operations.begin(key, slot, operation, site.turnsFor(what).resumed(), term);
    }
  }

  /** What there is, and what is under way. */
  #look(
    group: VmGroup,
    { site, root }: Location,
    key: string,
    template: Pick<Seen, 'templateId' | 'isTemplateThere'> = {},
  ): Seen {
    const machines = machinesOf(site, root, group);
    const failures = this.#operations.failuresOf(key);
    const troubles = failures.flatMap(({ what, error, words }) => {
      if (what.of === 'group' || error instanceof MovedError) return [];
      return troubleOf(error, site.name, words) ?? [];
    });
    const movedAway = failures.flatMap(({ what, error }): readonly [number, string][] =>
      'slot' in what && error instanceof MovedError ? [[what.slot, error.machine]] : [],
    );
    return {
      machines,
      gone: this.#operations.goneOf(
        key,
        machines.map(({ slot }) => slot),
      ),
      movedAway: new Map(movedAway),
      busy: this.#operations.of(key),
      resting: this.#operations.restingOf(key),
      inVain: this.#operations.inVainOf(key),
      isCloningAtRest: this.#operations.isCloningAtRest(key),
      ...template,
      troubles,
    };
  }

  #gone(group: VmGroup, key: string): undefined {
    this.#operations.forget(key);
    this.#announcements.clear(key);
    this.#locator.forget(group);
    this.#known.delete(key);
    this.#options.sites.find(group)?.leaveTurns(key);
  }

  /** One event for each cause, however often it is retried. */
  #announce(
    group: VmGroup,
    troubles: readonly Trouble[],
    { key, event, now }: ReconcileContext<VmGroup>,
    retryMs = this.#nextRetryMs(key),
  ): readonly Trouble[] {
    const news = this.#announcements.news(key, troubles);
    const retry = retryMs === undefined ? '' : `; next retry at ${timeOf(now() + retryMs)}`;
    for (const { reason, message } of news)
      event(group, { type: 'Warning', reason, note: `${message}${retry}` });
    return news;
  }

  #nextRetryMs(key: string): number | undefined {
    const now = this.#options.world.monotonic();
    const left = this.#operations.failuresOf(key).flatMap(({ until }) => (until > now ? until - now : []));
    return left.length === 0 ? undefined : Math.min(...left);
  }

  /**
   * Reports errors that a user or an administrator has to know of in the status, with one event and one log line for
   * each cause, and retries later. Others are thrown: the controller logs and retries them.
   */
  async #telling(
    group: VmGroup,
    context: ReconcileContext<VmGroup>,
    work: () => Promise<Result>,
  ): Promise<Result> {
    const { key, signal, now, log, cache, setStatus } = context;
    try {
      const result = await work();
      this.#operations.unblocked(key);
      return result;
    } catch (error) {
      const trouble = troubleOf(error, this.#options.sites.find(group)?.name ?? '');
      if (trouble === undefined || signal.aborted) throw error;
      const restMs = this.#operations.blocked(key, { error, words: '' });
      for (const { reason, message } of this.#announce(group, [trouble], context, restMs)) {
        const level = trouble.isUnknown ? 'debug' : 'warn'; // an outage is logged once for all groups
        log[level]({ reason, error: message, retryInMs: Math.round(restMs) }, 'VmGroup cannot be reconciled');
      }
      // As it is by now: the reconcile may have written it.
      const newest = cache(VmGroup).get(group.metadata) ?? group;
      await setStatus(newest, troubled(newest, trouble, now())).catch((failure) =>
        log.debug({ error: String(failure) }, 'Status could not be written'),
      );
      return requeueAfter(restMs);
    }
  }
}

/** What is observed of a group that was never placed. */
const NOTHING: Seen = {
  ...{ machines: [], busy: new Map(), resting: new Set(), inVain: new Set(), gone: new Set() },
  ...{ movedAway: new Map(), troubles: [], isCloningAtRest: false },
};

/** Stale inventory blocks actions; an outage is reported once it has lasted a while. A group without a status gets one. */
async function blindly(
  group: VmGroup,
  location: Location | undefined,
  { setStatus, now }: ReconcileContext<VmGroup>,
): Promise<Result> {
  if (location !== undefined && location.root.blindMs > BLIND_MS) throw location.site.health.outage();
  if (group.status?.phase === undefined) await setStatus(group, troubled(group, CONNECTING, now()));
  return requeueAfter(LOOK_MS);
}

const CONNECTING: Trouble = {
  reason: 'Connecting',
  message: 'waiting for vCenter to list the machines',
  isUnknown: true,
  isPassing: true,
};

/** To the second. */
function timeOf(ms: number): string {
  return new Date(Math.ceil(ms / 1_000) * 1_000).toISOString().replace('.000', '');
}

/** Lookups change nothing and have no event. */
const REASONS: Readonly<Record<Action['do'], string | undefined>> = {
  lookUp: undefined,
  clone: 'Cloning',
  powerOn: 'PoweringOn',
  reconfigure: 'Reconfiguring',
  shutDown: 'ShuttingDown',
  resize: 'Resizing',
  remove: 'Removing',
};
