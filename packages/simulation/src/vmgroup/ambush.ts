import { API_SERVER } from '../apiserver/simulated.ts';
import type { Truth } from '../invariants/invariant.ts';
import { Holder } from '../invariants/leaders.ts';
import { objectOf } from '../invariants/machines.ts';
import { LEASE } from '../scenario/observed-manager.ts';
import type { Replicas } from '../scenario/replicas.ts';
import type { Trouble } from '../scenario/trouble.ts';
import type { Pace } from '../vcenter/simulated.ts';
import type { Vcenter } from '../vcenter/vcenter.ts';
import { isDeleted, isOrphaned, onGroupChange, wantedIn } from './objects.ts';
import { machinesOf } from './outside.ts';
import { isChange, isClone, methodOf, ownerAsked } from './requests.ts';
import type { Strangers } from './strangers.ts';
import { FRESH, type User } from './user.ts';

/** One write in so many is followed at once by something that makes it dangerous. */
const TROUBLE = 40;
const SLEEP = 24;
const CHANGE_OF_MIND = 5;
const THEFT = 10;
const KILLED_SESSION = 12;
const INTRUSION = 3;
const ORPHANED = 8;
const BLINDED = 4;
const HIDDEN = 2;
const TEMPLATED = 4;
/** Calls that can remove a group's folder. */
const FOLDER_REMOVALS: ReadonlySet<string> = new Set(['Destroy_Task', 'UnregisterAndDestroy_Task']);
/** Longer than it takes to get the lead. */
const SLOW_MS = 30_000;
/** Within which a request arrives, mostly. */
const BLIND_MS = 2_000;
/** Until a group that was just asked for has machines. */
const MADE_MS = 20_000;
/** Within the time that a request and its answer usually take. */
const SOON_MS = 200;
/** Within the time that a clone takes. */
const LATER_MS = 4_000;

export interface Ambushers {
  readonly trouble: Trouble;
  readonly user: User;
  readonly strangers: Strangers;
  readonly vcenter: Vcenter;
  readonly pace: Pace;
  readonly replicas: Replicas;
}

/**
 * Waits for the moments that matter. Left to chance, few processes stop just between storing a slot and cloning, and few
 * groups change while a machine is made: thousands of histories would show nothing.
 */
export function layAmbush(truth: Truth, ambushers: Ambushers): void {
  const { trouble, user, strangers, vcenter, pace } = ambushers;
  blindTheNext(truth, ambushers);
  hideOneOfThoseLetGo(truth, ambushers);
  makeTemplatesAtScaleIn(truth, ambushers);
  const { traffic, simulation } = truth;
  const { choices, schedule, network } = simulation;
  const within = (ms: number, act: () => void) =>
    schedule.after(1 + choices.pick(ms), () => {
      if (network.faulty) act();
    });
  traffic.onSend((sent) => {
    if (!network.faulty || sent.path.includes('/leases')) return;
    const isWrite = sent.origin === API_SERVER || isChange(sent);
    if (!isWrite) return;
    const [name = ''] = sent.sender.split('.');
    if (choices.oneIn(TROUBLE)) within(SOON_MS, () => trouble.strike(name));
    // Asleep with the answer on its way, it wakes and goes on to the next step, when another may have the lead.
    if (choices.oneIn(SLEEP)) trouble.pause(name);
    if (FOLDER_REMOVALS.has(methodOf(sent)) && choices.oneIn(INTRUSION))
      within(SOON_MS, () => strangers.intrudeSomewhere());
    if (!isClone(sent)) return;
    const { uid } = ownerAsked(sent);
    const group = objectOf(truth, uid)?.metadata;
    if (group !== undefined && choices.oneIn(CHANGE_OF_MIND)) {
      const ref = { namespace: group.namespace ?? '', name: group.name };
      choices.one([
        () => within(LATER_MS, () => user.scale(ref)),
        () => within(LATER_MS, () => user.change(ref)),
        () => within(LATER_MS, () => user.delete(ref)),
        () => within(LATER_MS, () => user.letGo(ref)),
      ])();
      if (choices.oneIn(3)) trouble.pause(name);
    }
    // Its folder outlives it, and who waits for the answer does not: the machine lands, and is nobody's.
    if (group !== undefined && choices.oneIn(ORPHANED)) {
      strangers.intrudeInto(`${group.namespace}-${group.name}`);
      pace.nextCloneMs = SLOW_MS + choices.pick(SLOW_MS);
      trouble.pause(name);
      within(LATER_MS, () => user.delete({ namespace: group.namespace ?? '', name: group.name }));
    }
    if (choices.oneIn(THEFT)) within(LATER_MS, () => strangers.takeAway(machinesOf(vcenter, uid)[0]));
    if (choices.oneIn(KILLED_SESSION)) within(LATER_MS, () => strangers.killSessions());
  });
}

/** A machine that nobody is shown just as its group is let go of, and that comes to light when the group is gone. */
function hideOneOfThoseLetGo(truth: Truth, { strangers, vcenter }: Ambushers): void {
  const { choices, network } = truth.simulation;
  onGroupChange(truth, (before, after) => {
    if (!network.faulty || after === undefined || before === undefined) return;
    if (isDeleted(before) || !isDeleted(after) || !isOrphaned(after) || !choices.oneIn(HIDDEN)) return;
    strangers.moveAway(machinesOf(vcenter, after.metadata.uid ?? '')[0]);
  });
}

/** People keep a machine as a template just as its group is scaled in. */
function makeTemplatesAtScaleIn(truth: Truth, { strangers, vcenter }: Ambushers): void {
  const { choices, network } = truth.simulation;
  onGroupChange(truth, (before, after) => {
    if (!network.faulty || after === undefined || before === undefined || isDeleted(after)) return;
    if (wantedIn(after).replicas >= wantedIn(before).replicas || !choices.oneIn(TEMPLATED)) return;
    for (const machine of machinesOf(vcenter, after.metadata.uid ?? '')) strangers.turnIntoTemplate(machine);
  });
}

/** Who does not lead hears nothing of a new group, and leads when it has machines: it takes them for nobody's. */
function blindTheNext(truth: Truth, { user, replicas }: Ambushers): void {
  const { choices, schedule, network } = truth.simulation;
  const holder = new Holder(truth, LEASE);
  user.onCreate = (group) => {
    const leader = replicas.names.find((name) => holder.identity.startsWith(`${name}.`));
    if (group === FRESH || leader === undefined || !choices.oneIn(BLINDED)) return;
    for (const name of replicas.names) {
      if (name === leader) continue;
      network.partition(name, API_SERVER);
      schedule.after(BLIND_MS, () => network.heal(name, API_SERVER));
    }
    schedule.after(MADE_MS + choices.pick(MADE_MS), () => {
      if (network.faulty) replicas.crash(leader);
    });
  };
}
