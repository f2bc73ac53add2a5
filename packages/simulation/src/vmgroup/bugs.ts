import { LEADING_NOW } from '../planted/leading-now.ts';
import type { Planted } from '../planted/planted.ts';

const GC = 'packages/runtime/src/gc';
const VMGROUP = 'packages/operator/src/vmgroup';
const scenario = 'vmgroup';

/** In the controller of VmGroups and garbage collection. */
export const VMGROUP_BUGS: readonly Planted[] = [
  {
    name: 'a machine is cloned without a stored slot',
    file: `${VMGROUP}/reconciler.ts`,
    find: 'return await setStatus(group, intended);',
    replace:
      "return actions.some((action) => action.type === 'clone') ? group : await setStatus(group, intended);",
    why: 'who acts on a group that has changed since is refused before it clones',
    scenario,
  },
  {
    name: 'what does not show keeps its marks when a group is let go of',
    file: `${VMGROUP}/orphan.ts`,
    find: 'listed.get(replica.slot) ?? (await unlisted(replica, location, signal))',
    replace: 'listed.get(replica.slot)',
    why: 'when it shows, it is swept as nobody’s, and was to stay',
    scenario,
  },
  {
    name: 'a machine is removed before it is stored that it leaves',
    file: `${VMGROUP}/reconciler.ts`,
    find: 'return await setStatus(group, intended);',
    replace:
      "return actions.some((action) => action.type === 'remove') ? group : await setStatus(group, intended);",
    why: 'who removes on behalf of an old group removes what is wanted',
    scenario,
  },
  {
    name: 'the vCenter is not compared at a login',
    file: 'packages/vsphere/src/session/session.ts',
    find: 'identity: this.#identity',
    replace: 'identity: undefined',
    why: 'what was refused for want of a session would be sent to another vCenter behind the same address',
    scenario,
  },
  {
    name: 'a replica has another name each time',
    file: `${VMGROUP}/identity.ts`,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is a text of the source
    find: 'const suffix = `-replica-${letters(`${uid}/${slot}`)}`;',
    replace: `replicaName.times = (replicaName.times ?? 0) + 1;
  const suffix = \`-replica-\${letters(\`\${uid}/\${slot}/\${replicaName.times}\`)}\`;`,
    why: 'the name is what keeps vCenter from making a machine twice',
    scenario,
  },
  {
    name: 'garbage collection of groups trusts the cache',
    file: `${GC}/orphans.ts`,
    find: 'if (suspects.length > 0)',
    replace: 'if (suspects.length < 0)',
    why: 'after a watch has fallen silent, the cache lacks groups that are there',
    scenario,
  },
  {
    name: 'there is no garbage collection of groups',
    file: `${GC}/collector.ts`,
    find: 'for (const item of due.filter(isWitnessed))',
    replace: 'for (const item of due.slice(due.length))',
    why: 'a clone may land after its group is gone',
    scenario,
  },
  {
    name: 'garbage collection deletes what has no group',
    file: `${GC}/collector.ts`,
    find: 'return outlivedOwner?.(item) === true ||',
    replace: 'return ownerOf(item) !== undefined ||',
    why: 'after a restore, groups that are wanted are missing',
    scenario,
  },
  {
    name: 'a copy of a machine is taken for ours',
    file: 'packages/operator/src/vcenter/ownership.ts',
    find: "if (properties['config.instanceUuid'] !== instanceUuid(uid, slot)) return undefined;",
    replace: '',
    why: 'who copies a machine by hand copies its marks, but not its UUID',
    scenario,
  },
  {
    name: 'a folder is destroyed without a look into it',
    file: `${VMGROUP}/folders.ts`,
    find: 'if (childEntity?.length !== 0) return false;',
    replace: 'if (childEntity === null) return false;',
    why: 'machines in it would leave the inventory with it',
    scenario,
  },
  {
    name: 'a folder is destroyed with the machines that come into it',
    file: `${VMGROUP}/folders.ts`,
    find: 'await client.machines.unregisterFolder(folder, { ...options, resend: false });',
    replace: 'await client.machines.destroy(folder, { ...options, resend: false });',
    why: 'one that is put into it after the look would lose its disks',
    scenario,
  },
  {
    name: 'a folder that people have made is taken for ours',
    file: `${VMGROUP}/folders.ts`,
    find: 'const isOurs = owner?.isOurs ?? created;',
    replace: 'const isOurs = true;',
    why: 'it would be removed with the group',
    scenario,
  },
  {
    name: "another group's folder is taken",
    file: `${VMGROUP}/folders.ts`,
    find: '(owner.cluster !== claimant.cluster || (await groupExists(owner.uid, owner.namespace)));',
    replace: 'owner.cluster !== claimant.cluster;',
    why: 'two groups whose names run together would fight over it',
    scenario,
  },
  {
    name: 'turns are never given back',
    file: `${VMGROUP}/group-in-flight.ts`,
    find: 'permit.release(); started.resolve();',
    replace: 'started.resolve();',
    why: 'after three machines nothing would be done any more',
    scenario,
  },
  {
    name: 'a machine that came late is passed over',
    file: `${VMGROUP}/plan.ts`,
    find: 'if (!replicas.has(slot)) replicas.set(slot, { ...newReplica(group, slot, now), attempts: 1 });',
    replace: ';',
    why: 'its slot was given up, and nobody would ever look at it again',
    scenario,
  },
  {
    name: 'the slot of a machine that does not show is dropped at once',
    file: `${VMGROUP}/slots.ts`,
    find: 'return attempts > 0 && !gone.has(slot);',
    replace: 'return false;',
    why: 'people may have moved the machine: it would run on, without a group that mentions it',
    scenario,
  },
  {
    name: 'all machines leave at a time',
    file: `${VMGROUP}/plan.ts`,
    find: 'if (isReady(slot) && budget-- <= 0) return slot;',
    replace: '',
    why: 'maxUnavailable says how many may be away',
    scenario,
  },
  {
    name: 'vCenter is asked to clone without asking who leads',
    file: `${VMGROUP}/operations.ts`,
    find: 'extraConfig: labelsOf(slot, destination, running), }, scope, );',
    replace: 'extraConfig: labelsOf(slot, destination, running),\n      },\n      {},\n    );',
    why: 'after a pause of the process the signal is late',
    scenario,
  },
  {
    name: 'the fence of an operation asks only whether this process leads now',
    ...LEADING_NOW,
    scenario,
  },
  {
    name: 'a shutdown deadline that has passed requeues at once',
    file: `${VMGROUP}/plan.ts`,
    find: 'return ms > 0 ? ms : [];',
    replace: 'return Math.max(1, ms);',
    why: 'while the removal waits for something else, the group would be reconciled 1,000 times a second',
    scenario,
  },
  {
    name: 'machines that are let go keep their marks',
    file: `${VMGROUP}/orphan.ts`,
    find: 'extraConfig: NO_OWNERSHIP',
    replace: 'extraConfig: {}',
    why: 'they would be reported as orphans for ever',
    scenario,
  },
];
