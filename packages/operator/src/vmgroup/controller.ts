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
  unlessAborted,
  type World,
} from '@vmwright/runtime';
import type { ChangeOptions, Ref } from '@vmwright/vsphere';
import { deletionPolicyOf, isPaused } from '../annotations.ts';
import { operationFor, resumed } from './actions.ts';
import { claimFolder, releaseFolder } from './folder.ts';
import { machinesOf } from './machines.ts';
import { NO_MARKS } from './marks.ts';
import { folderName } from './names.ts';
import { Operations } from './operations.ts';
import {
  type Action,
  attempting,
  departing,
  type Machine,
  plan,
  type Seen,
  troubled,
  withTasks,
} from './plan.ts';
import { type Placement, VmGroup, type VmGroupStatus } from './resource.ts';
import type { Root } from './root.ts';
import { DEFAULT_FOLDER, type Site } from './site.ts';
import type { Sites } from './sites.ts';
import { GroupError, type Trouble, troubleOf, unreachable } from './trouble.ts';

export const FINALIZER = 'vmwright.dev/vmgroup';

/** An annotation that goes wakes the object; this is for one whose going was missed. */
const HELD_MS = 10 * 60_000;
/** Not known for so long, what is there is told as unknown; before, it is only not acted upon. */
const BLIND_MS = 10_000;
const LOOK_MS = 2_000;
/** A folder that was just claimed may not show yet. */
const CLAIMED_MS = 10_000;

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
  new VmGroups(options).control(manager);
}

/** Where a group is, for one look at it. */
interface Here {
  readonly site: Site;
  readonly placement: Placement;
  readonly root: Root;
}

interface Claimed {
  readonly folder: Ref<'Folder'>;
  readonly at: number;
}

class VmGroups {
  readonly #options: VmGroupControllerOptions;
  readonly #operations: Operations;
  /** Groups whose tasks of before are followed. */
  readonly #resumed = new Set<string>();
  /** By UID. */
  readonly #claimed = new Map<string, Claimed>();
  /** Sites of which it was told that nothing is known. */
  readonly #blind = new Set<Site>();

  constructor(options: VmGroupControllerOptions) {
    this.#options = options;
    const { world, wakes } = options;
    this.#operations = new Operations({ world, wake: (group) => wakes.tell(group) });
  }

  control(manager: Manager): void {
    const { world, log, wakes, concurrency } = this.#options;
    const groups = manager.caches.get(VmGroup);
    const poller = new Poller({
      world,
      everyMs: LOOK_MS,
      ask: async () => {
        const changed = await this.#sitesThatChanged();
        if (changed.size === 0) return [];
        return [...groups.list()].filter((group) => changed.has(this.#options.sites.find(group))).map(keyIn);
      },
      onError: (error) => log.warn({ error: String(error) }, 'the vCenters could not be looked at'),
    });
    manager.control({
      for: VmGroup,
      when: any(generationChanged, annotationsChanged),
      concurrency,
      // Not longer: a vCenter that is back after an hour is not to be waited for.
      backoff: { maxMs: 60_000 },
      resyncMs: 5 * 60_000,
      sources: [
        (wake, signal) => {
          // Who leads again knows nothing of what another has done meanwhile.
          this.#operations.clear();
          this.#resumed.clear();
          this.#claimed.clear();
          return wakes.source(wake, signal);
        },
        poller.source,
      ],
      reconcile: (group, context) => this.#telling(group, context, () => this.#reconcile(group, context)),
      finalizer: {
        name: FINALIZER,
        finalize: (group, context) => this.#telling(group, context, () => this.#finalize(group, context)),
      },
    });
  }

  async #reconcile(found: VmGroup, context: ReconcileContext<VmGroup>): Promise<Result> {
    const { key, setStatus, now } = context;
    if (isPaused(found)) return undefined;
    const here = await this.#locate(found, context);
    if (!here.root.isLive) return this.#blindly(here);
    const { turns } = here.site;
    let group = found;
    const seen = this.#look(group, here, key);
    const { status, actions } = plan(group, seen, now());
    const begun = actions.flatMap((action) => {
      const turn = turns.take(key);
      return turn === undefined ? [] : { action, turn };
    });
    try {
      const destination = begun.some(({ action }) => action.do === 'clone')
        ? await this.#destination(group, here, context)
        : undefined;
      const placed = this.#placed(status, here);
      group = await setStatus(
        group,
        attempting(
          placed,
          begun.map(({ action }) => action),
        ),
      );
      const surroundings = {
        ...{ ...here, group, destination, cluster: this.#options.cluster },
        allow: context.assertMayAct,
      };
      const beginnings = begun.splice(0).map(({ action, turn }) => {
        this.#event(group, action, context);
        return this.#operations.begin(key, action.slot, operationFor(action, surroundings), turn);
      });
      if (beginnings.length > 0) {
        await Promise.all(beginnings);
        group = await setStatus(group, withTasks(group.status ?? {}, this.#operations.of(key)));
      }
    } finally {
      for (const { turn } of begun) turn.end();
    }
    if (beginningsLeft(actions, this.#operations.of(key)) === 0) turns.leave(key);
    const againMs = this.#operations.againMs(key);
    return againMs === undefined ? undefined : requeueAfter(againMs);
  }

  /** Removes the machines, then the folder, and lets the group go when both are gone. */
  async #finalize(group: VmGroup, context: ReconcileContext<VmGroup>): Promise<Result> {
    const { key, setStatus, now } = context;
    if (isPaused(group)) return requeueAfter(HELD_MS);
    const policy = deletionPolicyOf(group);
    if (typeof policy === 'object') {
      await setStatus(group, departing(group, [], `it is not deleted: ${policy.problem}`, now()));
      return requeueAfter(HELD_MS);
    }
    // Nothing was ever asked for, and so nothing is there.
    if (group.status?.vcenter === undefined) return this.#forget(group, key);
    const here = await this.#locate(group, context);
    if (!here.root.isLive) return this.#blindly(here);
    const { site } = here;
    const seen = this.#look(group, here, key);
    const { machines, busy, resting } = seen;
    const allow = { allow: context.assertMayAct };
    if (policy === 'Orphan' && busy.size === 0) {
      await this.#letGo(here, machines, allow);
      await this.#release(group, here, allow);
      return this.#forget(group, key);
    }
    const surroundings = { ...here, group, destination: undefined, cluster: this.#options.cluster, ...allow };
    const beginnings =
      policy === 'Orphan'
        ? []
        : machines.flatMap(({ slot, id, power }) => {
            if (busy.has(slot) || resting.has(slot)) return [];
            const turn = site.turns.take(key);
            if (turn === undefined) return [];
            const action = { do: 'remove', slot, id, isOn: power !== 'poweredOff' } as const;
            return this.#operations.begin(key, slot, operationFor(action, surroundings), turn);
          });
    await Promise.all(beginnings);
    const isEmpty = machines.length === 0 && busy.size === 0;
    if (isEmpty && (await this.#release(group, here, allow))) return this.#forget(group, key);
    const message = seen.trouble?.message ?? 'its machines are being removed';
    await setStatus(group, withTasks(departing(group, machines, message, now()), this.#operations.of(key)));
    if (machines.length === 0) site.turns.leave(key);
    return requeueAfter(this.#operations.againMs(key) ?? LOOK_MS);
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
    const resting = this.#operations.restingOf(key);
    const error = this.#operations.errorOf(key);
    const what = `making machines from template '${group.spec.template}'`;
    const trouble = error === undefined ? undefined : troubleOf(error, site.name, what);
    return { machines: machinesOf(site, root, group), busy: this.#operations.of(key), resting, trouble };
  }

  async #locate(group: VmGroup, { assertMayAct, signal }: ReconcileContext<VmGroup>): Promise<Here> {
    const site = this.#options.sites.of(group);
    const { vcenter, datacenter, folder } = group.status ?? {};
    const wanted = site.placementOf(group.spec.placement);
    const { folder: wantedFolder = DEFAULT_FOLDER } = wanted;
    const hasMoved =
      (vcenter !== undefined && vcenter !== (group.spec.placement?.vcenter ?? vcenter)) ||
      (datacenter !== undefined && wanted.datacenter !== undefined && datacenter !== wanted.datacenter) ||
      (folder !== undefined && folder !== wantedFolder);
    if (hasMoved && group.metadata.deletionTimestamp === undefined)
      throw new GroupError({
        reason: 'PlacementChanged',
        message: `its machines are on vCenter '${vcenter}' in '${datacenter}/${folder}' and do not move; set the placement back, or delete the group and create another`,
      });
    const placement = {
      ...wanted,
      ...(datacenter !== undefined && { datacenter }),
      ...(folder !== undefined && { folder }),
    };
    const root = await unlessAborted(site.root(placement, assertMayAct), signal);
    await unlessAborted(site.learnHosts(root.hosts()), signal);
    return { site, placement, root };
  }

  /** Where its machines are, which stays. */
  #placed(status: VmGroupStatus, { site, root, placement }: Here): VmGroupStatus {
    const { folder = DEFAULT_FOLDER } = placement;
    return { ...status, vcenter: site.name, datacenter: root.datacenter.name, folder };
  }

  async #destination(group: VmGroup, here: Here, context: ReconcileContext<VmGroup>) {
    const { site, root, placement } = here;
    const { template, linked = false } = group.spec;
    const target = await unlessAborted(
      site.target(root.datacenter, placement, template, linked),
      context.signal,
    );
    return { ...target, folder: await this.#folder(group, here, context) };
  }

  async #folder(
    group: VmGroup,
    { site, root }: Here,
    context: ReconcileContext<VmGroup>,
  ): Promise<Ref<'Folder'>> {
    const { world, cluster } = this.#options;
    const { uid = '' } = group.metadata;
    const name = folderName(group);
    const [claimed, shown] = [this.#claimed.get(uid), root.child(name)];
    if (claimed !== undefined) {
      const isNew = world.monotonic() - claimed.at < CLAIMED_MS;
      if (shown?.value === claimed.folder.value || (shown === undefined && isNew)) return claimed.folder;
    }
    const claim = {
      ...{ vcenter: site.vcenter, root, name, owner: { cluster, uid } },
      lives: (other: string) => this.#lives(other, context),
    };
    const options = { allow: context.assertMayAct };
    const folder = await site.alone(`${root.folder.value}/${name}`, () => claimFolder(claim, options));
    this.#claimed.set(uid, { folder, at: world.monotonic() });
    return folder;
  }

  /** Asked of the API server itself: a cache may lack a group that is there. */
  async #lives(uid: string, { client, signal }: ReconcileContext<VmGroup>): Promise<boolean> {
    const { namespaces } = this.#options;
    if (namespaces !== undefined) return true; // it may be in one that we do not see
    for await (const { items } of client.pages(VmGroup, { metadataOnly: true, signal }))
      if (items.some(({ metadata }) => metadata.uid === uid)) return true;
    return false;
  }

  async #letGo({ site }: Here, machines: readonly Machine[], options: ChangeOptions): Promise<void> {
    const { vcenter } = site;
    for (const { id } of machines) {
      const vm = { type: 'VirtualMachine', value: id } as const;
      await vcenter.tasks.follow(await vcenter.machines.reconfigure(vm, { extraConfig: NO_MARKS }, options));
    }
  }

  /** @returns whether the folder is gone, or not the group's any more */
  async #release(group: VmGroup, { site, root }: Here, options: ChangeOptions): Promise<boolean> {
    const { cluster } = this.#options;
    const { uid = '' } = group.metadata;
    const folder = this.#claimed.get(uid)?.folder ?? root.child(folderName(group));
    if (folder === undefined) return true;
    return site.alone(`${root.folder.value}/${folderName(group)}`, () =>
      releaseFolder(site.vcenter, folder, { cluster, uid }, options),
    );
  }

  #forget(group: VmGroup, key: string): undefined {
    this.#operations.forget(key);
    this.#resumed.delete(key);
    this.#claimed.delete(group.metadata.uid ?? '');
    this.#options.sites.find(group)?.turns.leave(key);
  }

  /** Nothing is done while it is not known what there is; soon it is told, too. */
  #blindly({ site, root }: Here): Result {
    if (root.blindMs > BLIND_MS) throw unreachable(site.name);
    return requeueAfter(LOOK_MS);
  }

  /** Sites that have gone blind, or see again. */
  async #sitesThatChanged(): Promise<ReadonlySet<Site | undefined>> {
    const changed = new Set<Site>();
    for (const site of this.#options.sites) {
      const blind = site.roots.filter((root) => root.blindMs > BLIND_MS);
      if (blind.length > 0 !== this.#blind.has(site)) changed.add(site);
      if (blind.length > 0) this.#blind.add(site);
      else this.#blind.delete(site);
      // A folder that is gone cannot be followed; one that is made in its place can.
      for (const root of blind) if (await site.isGone(root)) site.close(root);
    }
    return changed;
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
      if (trouble !== undefined && !context.signal.aborted) await this.#tell(group, trouble, context);
      throw error;
    }
  }

  async #tell(group: VmGroup, trouble: Trouble, context: ReconcileContext<VmGroup>): Promise<void> {
    const { cache, setStatus, event, now, log } = context;
    // As it is by now: the reconcile may have written it.
    const newest = cache(VmGroup).get(group.metadata) ?? group;
    if (newest.status?.lastMessage !== trouble.message)
      event(group, { type: 'Warning', reason: trouble.reason, note: trouble.message });
    await setStatus(newest, troubled(newest, trouble, now())).catch((failure) =>
      log.debug({ error: String(failure) }, 'the trouble with vCenter could not be told'),
    );
  }

  #event(group: VmGroup, action: Action, { event }: ReconcileContext<VmGroup>): void {
    const name = group.status?.replicas?.find(({ slot }) => slot === action.slot)?.name;
    event(group, { type: 'Normal', ...EVENTS[action.do](name ?? '') });
  }
}

const EVENTS: Readonly<Record<Action['do'], (name: string) => { reason: string; note: string }>> = {
  clone: (name) => ({ reason: 'Cloning', note: `machine ${name} is made` }),
  powerOn: (name) => ({ reason: 'PoweringOn', note: `machine ${name} is powered on` }),
  reconfigure: (name) => ({ reason: 'Reconfiguring', note: `machine ${name} is given its cpu and memory` }),
  resize: (name) => ({ reason: 'Resizing', note: `machine ${name} is restarted with another cpu or memory` }),
  remove: (name) => ({ reason: 'Removing', note: `machine ${name} is removed` }),
};

/** How many are still to be begun. */
function beginningsLeft(actions: readonly Action[], busy: ReadonlyMap<number, unknown>): number {
  return actions.filter(({ slot }) => !busy.has(slot)).length;
}

function keyIn({ metadata }: VmGroup): string {
  return keyOf(metadata);
}
