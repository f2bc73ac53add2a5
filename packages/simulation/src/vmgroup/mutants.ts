import type { Mutant } from '../mutants/mutant.ts';
import { REOPENED_FENCE } from '../mutants/reopened-fence.ts';

const GC = 'packages/runtime/src/gc';
const VMGROUP = 'packages/operator/src/vmgroup';
const scenario = 'vmgroup';

/** Mutants of the VmGroup controller, garbage collection and the vSphere session. */
export const VMGROUP_MUTANTS: readonly Mutant[] = [
  {
    name: 'machine is cloned without a stored slot',
    file: `${VMGROUP}/reconciler.ts`,
    find: 'return await setStatus(group, intended);',
    replace:
      "return actions.some((action) => action.type === 'clone') ? group : await setStatus(group, intended);",
    why: 'a replica with an outdated group fails its status write before it clones',
    scenario,
  },
  {
    name: 'hidden machine keeps its ownership labels when its group is orphaned',
    file: `${VMGROUP}/orphan.ts`,
    find: 'listed.get(replica.slot) ?? (await unlisted(group, replica, location, signal))',
    replace: 'listed.get(replica.slot)',
    why: 'when the machine becomes visible again, garbage collection would delete it although it must stay',
    scenario,
  },
  {
    name: 'machine is removed before its removal is stored',
    file: `${VMGROUP}/reconciler.ts`,
    find: 'return await setStatus(group, intended);',
    replace:
      "return actions.some((action) => action.type === 'remove') ? group : await setStatus(group, intended);",
    why: 'a replica with an outdated group would remove wanted machines',
    scenario,
  },
  {
    name: 'vCenter identity is not checked at login',
    file: 'packages/vsphere/src/session/session.ts',
    find: 'identity: this.#identity',
    replace: 'identity: undefined',
    why: 'requests rejected for a missing session would be sent to another vCenter behind the same address',
    scenario,
  },
  {
    name: 'replica gets a new name on each attempt',
    file: `${VMGROUP}/identity.ts`,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a source file
    find: 'const suffix = `-replica-${letters(`${uid}/${slot}`)}`;',
    replace: `replicaName.times = (replicaName.times ?? 0) + 1;
  const suffix = \`-replica-\${letters(\`\${uid}/\${slot}/\${replicaName.times}\`)}\`;`,
    why: 'a name that stays the same keeps vCenter from creating a machine twice',
    scenario,
  },
  {
    name: 'VmGroup VM garbage collection trusts the cache',
    file: `${GC}/orphans.ts`,
    find: 'if (suspects.length > 0)',
    replace: 'if (suspects.length < 0)',
    why: 'after a watch has silently stalled, the cache lacks existing groups',
    scenario,
  },
  {
    name: 'VmGroup garbage collection deletes nothing',
    file: `${GC}/collector.ts`,
    find: 'for (const item of due.filter(isWitnessed))',
    replace: 'for (const item of due.slice(due.length))',
    why: 'a clone can complete after its group is gone',
    scenario,
  },
  {
    name: 'garbage collection deletes every machine without a group',
    file: `${GC}/collector.ts`,
    find: 'return outlivedOwner?.(item) === true ||',
    replace: 'return ownerOf(item) !== undefined ||',
    why: 'after a restore from backup, wanted groups are missing',
    scenario,
  },
  {
    name: 'copied machine is treated as managed',
    file: 'packages/operator/src/vcenter/ownership.ts',
    find: "if (properties['config.instanceUuid'] !== instanceUuid(uid, slot)) return undefined;",
    replace: '',
    why: 'a manual copy of a machine has the same ownership labels, but another UUID',
    scenario,
  },
  {
    name: 'folder is destroyed without checking that it is empty',
    file: `${VMGROUP}/folders.ts`,
    find: 'if (childEntity?.length !== 0) return false;',
    replace: 'if (childEntity === null) return false;',
    why: 'the machines in the folder would leave the inventory with it',
    scenario,
  },
  {
    name: 'folder is destroyed with machines that were just added',
    file: `${VMGROUP}/folders.ts`,
    find: 'await client.machines.unregisterFolder(folder, { ...options, resend: false });',
    replace: 'await client.machines.destroy(folder, { ...options, resend: false });',
    why: 'a machine that is added after the check would lose its disks',
    scenario,
  },
  {
    name: 'folder made by a user is treated as managed',
    file: `${VMGROUP}/folders.ts`,
    find: 'const isOurs = owner?.isOurs ?? created;',
    replace: 'const isOurs = true;',
    why: 'the folder of the user would be removed with the group',
    scenario,
  },
  {
    name: 'folder of another group is taken over',
    file: `${VMGROUP}/folders.ts`,
    find: '(owner.cluster !== claimant.cluster || (await groupExists(owner.uid, owner.namespace)));',
    replace: 'owner.cluster !== claimant.cluster;',
    why: 'two groups with the same folder name would fight over the folder',
    scenario,
  },
  {
    name: 'permits are never released',
    file: `${VMGROUP}/group-in-flight.ts`,
    find: 'permit.release(); started.resolve();',
    replace: 'started.resolve();',
    why: 'after three operations all permits would be taken, and no operation would start any more',
    scenario,
  },
  {
    name: 'late clone is ignored',
    file: `${VMGROUP}/plan.ts`,
    find: 'if (!replicas.has(slot)) replicas.set(slot, { ...newReplica(group, slot, now), attempts: 1 });',
    replace: ';',
    why: 'the slot of a late clone was dropped, so no group would ever manage the machine',
    scenario,
  },
  {
    name: 'slot of a hidden machine is dropped at once',
    file: `${VMGROUP}/slots.ts`,
    find: 'return attempts > 0 && !gone.has(slot);',
    replace: 'return false;',
    why: 'users may have moved the machine: it would keep running, and no group would list it',
    scenario,
  },
  {
    name: 'all machines are replaced at once',
    file: `${VMGROUP}/plan.ts`,
    find: 'if (isReady(slot) && budget-- <= 0) return slot;',
    replace: '',
    why: 'maxUnavailable limits the number of unavailable machines',
    scenario,
  },
  {
    name: 'machine is cloned without a leadership check',
    file: `${VMGROUP}/operations.ts`,
    find: 'extraConfig: labelsOf(slot, destination, running), }, scope, );',
    replace: 'extraConfig: labelsOf(slot, destination, running),\n      },\n      {},\n    );',
    why: 'after a pause of the process its abort signal is late',
    scenario,
  },
  {
    name: 'operation fence reopens when the same process leads again',
    ...REOPENED_FENCE,
    scenario,
  },
  {
    name: 'expired shutdown deadline requeues at once',
    file: `${VMGROUP}/plan.ts`,
    find: 'return ms > 0 ? ms : [];',
    replace: 'return Math.max(1, ms);',
    why: 'while the removal waits for something else, the group would be reconciled 1,000 times a second',
    scenario,
  },
  {
    name: 'orphaned machines keep their ownership labels',
    file: `${VMGROUP}/orphan.ts`,
    find: 'extraConfig: NO_OWNERSHIP',
    replace: 'extraConfig: {}',
    why: 'garbage collection would report the machines as orphans forever',
    scenario,
  },
];
