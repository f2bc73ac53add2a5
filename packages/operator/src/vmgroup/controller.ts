import {
  annotationsChanged,
  any,
  type Channel,
  generationChanged,
  keyOf,
  type Logger,
  type Manager,
  Poller,
  type ReconcileContext,
  type Result,
  requeueAfter,
  type World,
} from '@vmwright/runtime';
import { isPaused } from '../annotations.ts';
import { operationFor, resumed } from './actions.ts';
import { Finalizing } from './finalizing.ts';
import { machinesOf } from './machines.ts';
import { Operations } from './operations.ts';
import { type Action, attempting, type Plan, plan, type Seen, troubled, withTasks } from './plan.ts';
import { VmGroup } from './resource.ts';
import type { Sites } from './sites.ts';
import { type Trouble, troubleOf, unreachable } from './trouble.ts';
import type { Turn } from './turns.ts';
import { BLIND_MS, Watchfulness } from './watchfulness.ts';
import { type Here, placed, Whereabouts } from './whereabouts.ts';

export const FINALIZER = 'vmwright.dev/vmgroup';

const LOOK_MS = 2_000;

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
  const watchfulness = new Watchfulness(sites);
  const poller = new Poller({
    world,
    everyMs: LOOK_MS,
    ask: async () => {
      const changed = await watchfulness.changed();
      if (changed.size === 0) return [];
      return [...groups.list()]
        .filter((group) => changed.has(sites.find(group)))
        .map(({ metadata }) => keyOf(metadata));
    },
    onError: (error) => log.warn({ error: String(error) }, 'the vCenters could not be looked at'),
  });
  const vmGroups = new VmGroups(options);
  manager.control({
    for: VmGroup,
    when: any(generationChanged, annotationsChanged),
    concurrency,
    // Not longer: a vCenter that is back after an hour is not to be waited for.
    backoff: { maxMs: 60_000 },
    resyncMs: 5 * 60_000,
    sources: [
      (wake, signal) => {
        vmGroups.begin();
        return wakes.source(wake, signal);
      },
      poller.source,
    ],
    reconcile: (group, context) => vmGroups.reconcile(group, context),
    finalizer: { name: FINALIZER, finalize: (group, context) => vmGroups.finalize(group, context) },
  });
}

/** What was decided on, and the right to begin with it. */
interface Begun {
  readonly action: Action;
  readonly turn: Turn;
}

class VmGroups {
  readonly #options: VmGroupControllerOptions;
  readonly #operations: Operations;
  readonly #whereabouts: Whereabouts;
  readonly #finalizing: Finalizing;
  /** Groups whose tasks of before are followed. */
  readonly #resumed = new Set<string>();

  constructor(options: VmGroupControllerOptions) {
    const { world, wakes, cluster } = options;
    this.#options = options;
    this.#operations = new Operations({ world, wake: (group) => wakes.tell(group) });
    this.#whereabouts = new Whereabouts(options);
    this.#finalizing = new Finalizing({
      cluster,
      operations: this.#operations,
      whereabouts: this.#whereabouts,
    });
  }

  /** We lead, perhaps again: what another has done meanwhile, nobody knows here. */
  begin(): void {
    this.#operations.clear();
    this.#whereabouts.forget();
    this.#resumed.clear();
  }

  reconcile(group: VmGroup, context: ReconcileContext<VmGroup>): Promise<Result> {
    return this.#telling(group, context, async () => {
      if (isPaused(group)) return undefined;
      const here = await this.#whereabouts.locate(group, context);
      if (!here.root.isLive) return blindly(here);
      const { key, now } = context;
      const { turns } = here.site;
      const next = plan(group, this.#look(group, here, key), now());
      const begun = next.actions.flatMap((action) => {
        const turn = turns.take(key);
        return turn === undefined ? [] : { action, turn };
      });
      try {
        await this.#carryOut(group, here, next, begun, context);
      } catch (error) {
        turns.leave(key); // or its own turns, given back, would wake it at once, past its back-off
        throw error;
      } finally {
        for (const { turn } of begun) turn.end();
      }
      const busy = this.#operations.of(key);
      if (next.actions.every(({ slot }) => busy.has(slot))) turns.leave(key);
      const againMs = this.#operations.againMs(key);
      return againMs === undefined ? undefined : requeueAfter(againMs);
    });
  }

  finalize(group: VmGroup, context: ReconcileContext<VmGroup>): Promise<Result> {
    return this.#telling(group, context, async () => {
      const gone = () => {
        this.#operations.forget(context.key);
        this.#whereabouts.forget(group);
        this.#resumed.delete(context.key);
        this.#options.sites.find(group)?.turns.leave(context.key);
      };
      const { status } = group;
      // Where nothing was ever asked for, nothing is there.
      if (status?.vcenter === undefined) return gone();
      const held = await this.#finalizing.held(group, context);
      if (held !== undefined) return held;
      const here = await this.#whereabouts.locate(group, context);
      if (!here.root.isLive) return blindly(here);
      const result = await this.#finalizing.run(group, here, this.#look(group, here, context.key), context);
      return result ?? gone();
    });
  }

  /** Stores what is about to be done, and begins with it: those that were begun are taken out of the list. */
  async #carryOut(
    found: VmGroup,
    here: Here,
    { status }: Plan,
    begun: Begun[],
    context: ReconcileContext<VmGroup>,
  ): Promise<void> {
    const { key, setStatus, event, signal, assertMayAct: allow } = context;
    const { cluster } = this.#options;
    const actions = begun.map(({ action }) => action);
    const isCloning = actions.some((action) => action.do === 'clone');
    const target = isCloning ? await this.#whereabouts.target(found, here, signal) : undefined;
    let group = found;
    let folder = this.#whereabouts.claimed(found, here);
    if (isCloning && folder === undefined) {
      // Where it is must be known before anything is made there; all else is told when it is so.
      group = await setStatus(group, placed(group.status ?? {}, here));
      folder = await this.#whereabouts.claim(group, here, context);
    }
    group = await setStatus(group, attempting(placed(status, here), actions));
    const destination = target && folder && { ...target, folder };
    const beginnings = begun.splice(0).map(({ action, turn }) => {
      const name = group.status?.replicas?.find(({ slot }) => slot === action.slot)?.name;
      event(group, { type: 'Normal', ...EVENTS[action.do](name ?? '') });
      const operation = operationFor(action, { ...here, group, cluster, destination, allow });
      return this.#operations.begin(key, action.slot, operation, turn);
    });
    if (beginnings.length === 0) return;
    await Promise.all(beginnings);
    await setStatus(group, withTasks(group.status ?? {}, this.#operations.of(key)));
  }

  /** What there is, and what is under way. */
  #look(group: VmGroup, { site, root }: Here, key: string): Seen {
    if (!this.#resumed.has(key)) {
      this.#resumed.add(key);
      for (const { slot, task, leaving, power } of group.status?.replicas ?? []) {
        if (task === undefined) continue;
        const what = leaving ? 'remove' : power === undefined ? 'clone' : 'reconfigure';
        void this.#operations.begin(key, slot, resumed(what, task, { site }), site.turns.resumed());
      }
    }
    const error = this.#operations.errorOf(key);
    const what = `making machines from template '${group.spec.template}'`;
    return {
      machines: machinesOf(site, root, group),
      busy: this.#operations.of(key),
      resting: this.#operations.restingOf(key),
      trouble: error === undefined ? undefined : troubleOf(error, site.name, what),
    };
  }

  /** What stands in the way is in the status too; the log has it in full, since it is thrown. */
  async #telling(
    group: VmGroup,
    context: ReconcileContext<VmGroup>,
    work: () => Promise<Result>,
  ): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      const trouble = troubleOf(error, this.#options.sites.find(group)?.name ?? '');
      if (trouble !== undefined && !context.signal.aborted) await tell(group, trouble, context);
      throw error;
    }
  }
}

/** Nothing is done while it is not known what there is; soon it is told, too. */
function blindly({ site, root }: Here): Result {
  if (root.blindMs > BLIND_MS) throw unreachable(site.name);
  return requeueAfter(LOOK_MS);
}

async function tell(group: VmGroup, trouble: Trouble, context: ReconcileContext<VmGroup>): Promise<void> {
  const { cache, setStatus, event, now, log } = context;
  // As it is by now: the reconcile may have written it.
  const newest = cache(VmGroup).get(group.metadata) ?? group;
  if (newest.status?.lastMessage !== trouble.message)
    event(group, { type: 'Warning', reason: trouble.reason, note: trouble.message });
  await setStatus(newest, troubled(newest, trouble, now())).catch((failure) =>
    log.debug({ error: String(failure) }, 'the trouble with vCenter could not be told'),
  );
}

const EVENTS: Readonly<Record<Action['do'], (name: string) => { reason: string; note: string }>> = {
  clone: (name) => ({ reason: 'Cloning', note: `machine ${name} is made` }),
  powerOn: (name) => ({ reason: 'PoweringOn', note: `machine ${name} is powered on` }),
  reconfigure: (name) => ({ reason: 'Reconfiguring', note: `machine ${name} is given its cpu and memory` }),
  resize: (name) => ({ reason: 'Resizing', note: `machine ${name} is restarted with another cpu or memory` }),
  remove: (name) => ({ reason: 'Removing', note: `machine ${name} is removed` }),
};
