import { same } from '../apiserver/json.ts';
import type { StoredObject } from '../apiserver/object.ts';
import { deletedUids } from '../invariants/garbage.ts';
import type { Invariant, Truth } from '../invariants/invariant.ts';
import { Holder } from '../invariants/leaders.ts';
import { objectOf } from '../invariants/machines.ts';
import { LEASE } from '../scenario/observed-manager.ts';
import type { Sent } from '../scenario/traffic.ts';
import type { Machine } from '../vcenter/machine.ts';
import type { Vcenter } from '../vcenter/vcenter.ts';
import { foldersIn, labelsOf, type Owner, ownerOf } from './external-resources.ts';
import {
  isDeleted,
  isOrphaned,
  nameOf,
  onGroupChange,
  readyOf,
  slotOf,
  slotsOf,
  wantedIn,
} from './objects.ts';
import { CONCURRENCY } from './program.ts';
import { isChange, isClone, methodOf, requestedOwner } from './requests.ts';

/* Invariants of VmGroups, in addition to those of all objects with external resources. */

/**
 * A slot (a numbered replica of a group) has at most one machine with its labels, and at most one with its UUID. Copies
 * made by users do not count.
 */
export function oneMachinePerSlot(vcenter: Vcenter): Invariant {
  return {
    name: 'at most one machine per group and slot, and per UUID',
    watch: (_, violated) =>
      vcenter.machines.listen(({ before, after, cause }) => {
        const made = before === undefined && cause === 'request' ? after : undefined;
        const owner = made && labelsOf(made);
        if (made === undefined || owner === undefined) return;
        for (const other of vcenter.machines.all()) {
          if (other.id === made.id) continue;
          const theirs = ownerOf(other);
          const isTwin = theirs?.uid === owner.uid && theirs.slot === owner.slot;
          if (isTwin || other.instanceUuid === made.instanceUuid)
            violated(`${owner.uid}/${owner.slot} has ${other.id} and ${made.id}`);
        }
      }),
  };
}

/**
 * Maximum time between the last read of a folder or machine and the request to destroy it: the transit time of the
 * response to the read.
 */
const READ_MS = 13_000;

/**
 * The operator changes and destroys only machines that it created and has not orphaned. Exception: if a machine is
 * added to a folder just when the folder is removed, the machine may leave the inventory with the folder. vCenter has
 * no request that removes a folder only if it is empty. The machine's files stay.
 */
export function foreignMachinesLeftAlone(vcenter: Vcenter): Invariant {
  return {
    name: 'foreign machines are never touched',
    watch: ({ traffic, simulation }, violated) => {
      const ours = new Set<string>();
      const addedAt = new Map<string, number>();
      const folderRequestedAt = new Map<string, number>();
      const sentAt = new Map<string, number>();
      const orphanedAt = new Map<string, number>();
      let arriving: Sent | undefined;
      traffic.onArrival((sent) => {
        arriving = sent;
      });
      vcenter.tasks.onBegin(({ ref, on }) => {
        (on.type === 'Folder' ? folderRequestedAt : sentAt).set(ref.value, arriving?.at ?? 0);
      });
      vcenter.machines.listen(({ before, after, cause, task, isUnregistered }) => {
        if (after !== undefined && before?.folder !== after.folder)
          addedAt.set(after.id, simulation.schedule.now);
        if (cause !== 'request') return;
        if (before === undefined) {
          if (after !== undefined && labelsOf(after) !== undefined) ours.add(after.id);
          return;
        }
        const isJustIn =
          isUnregistered === true &&
          (addedAt.get(before.id) ?? 0) > (folderRequestedAt.get(task ?? '') ?? Number.MAX_VALUE) - READ_MS;
        // Not a violation: the request was sent before the machine was orphaned, and arrived late.
        const wasRequested = (sentAt.get(task ?? '') ?? Number.MAX_VALUE) < (orphanedAt.get(before.id) ?? 0);
        if (!ours.has(before.id) && !isJustIn && !wasRequested)
          violated(`${before.id} ('${before.name}') is ${after ? 'changed' : 'destroyed'}`);
        if (after === undefined || labelsOf(after) !== undefined || !ours.delete(after.id)) return;
        orphanedAt.set(after.id, simulation.schedule.now);
      });
    },
  };
}

/**
 * The operator destroys a machine only after the group was deleted, or after the group's status marks the machine's
 * slot as terminating.
 */
export function noWantedMachineDestroyed(vcenter: Vcenter): Invariant {
  return {
    name: 'no wanted machine is destroyed',
    watch: (truth, violated) => {
      const doomed = new Set<string>();
      const deleted = deletedUids(truth);
      const isTerminating = (owner: Owner) => {
        const object = objectOf(truth, owner.uid);
        return object !== undefined && slotOf(object, owner.slot)?.isTerminating === true;
      };
      onGroupChange(truth, (before, after) => {
        if (after === undefined || before?.status === after.status) return;
        for (const { slot, isTerminating: goes } of slotsOf(after))
          if (goes)
            for (const machine of machinesIn(vcenter, after.metadata.uid, slot)) doomed.add(machine.id);
      });
      vcenter.machines.listen(({ before, after, cause }) => {
        const owner = (after ?? before) && ownerOf(after ?? before ?? NO_MACHINE);
        if (owner === undefined) return;
        if (before === undefined && after !== undefined && isTerminating(owner)) doomed.add(after.id);
        if (before === undefined || after !== undefined || cause !== 'request' || doomed.has(before.id))
          return;
        const object = objectOf(truth, owner.uid);
        if (object === undefined && !deleted.has(owner.uid))
          violated(`${before.id} of ${owner.uid} is destroyed, but the group itself was never deleted`);
        if (object !== undefined && !isDeleted(object))
          violated(`${before.id} of ${nameOf(object)}, slot ${owner.slot}, is destroyed`);
      });
    },
  };
}

/**
 * Maximum time from the response that proves that a machine is gone until the status write that drops the machine's
 * slot. A late clone can complete in between, so machines that are younger than this are ignored.
 */
const PROOF_MS = 20_000;

/**
 * A slot is dropped only when its machine is gone or no longer has the group's labels. A machine that users moved to
 * another folder is not gone.
 */
export function slotsOutliveMachines(vcenter: Vcenter): Invariant {
  return {
    name: 'a slot is dropped only when its machine is gone or released',
    watch: (truth, violated) => {
      const { schedule } = truth.simulation;
      const bornAt = new Map<string, number>();
      vcenter.machines.listen(({ before, after }) => {
        if (before === undefined && after !== undefined) bornAt.set(after.id, schedule.now);
      });
      onGroupChange(truth, (before, after) => {
        if (before === undefined || before.status === after?.status) return;
        for (const { slot } of slotsOf(before)) {
          if (after !== undefined && slotOf(after, slot) !== undefined) continue;
          for (const { id } of machinesIn(vcenter, before.metadata.uid, slot))
            if (schedule.now - (bornAt.get(id) ?? 0) > PROOF_MS)
              violated(`${id} of ${nameOf(before)}, slot ${slot}, is left without a slot`);
        }
      });
    },
  };
}

/** A machine that users moved to another folder, or turned into a template, stays while its group exists. */
export function movedMachinesStay(vcenter: Vcenter): Invariant {
  return {
    name: 'machines that users moved or turned into templates are not destroyed',
    watch: (truth, violated) => {
      const { traffic, simulation } = truth;
      const takenAt = new Map<string, number>();
      const sentAt = new Map<string, number>();
      let arriving: Sent | undefined;
      traffic.onArrival((sent) => {
        arriving = sent;
      });
      vcenter.tasks.onBegin(({ ref }) => sentAt.set(ref.value, arriving?.at ?? 0));
      vcenter.machines.listen(({ before, after, cause, task }) => {
        const owner = before && ownerOf(before);
        if (before === undefined || owner === undefined) return;
        if (cause === 'somebody' && after !== undefined) {
          const isMoved = before.folder !== after.folder && !isInFolderOf(truth, vcenter, after);
          if (isMoved || (after.isTemplate && !before.isTemplate))
            takenAt.set(after.id, simulation.schedule.now);
        }
        if (cause !== 'request' || after !== undefined || objectOf(truth, owner.uid) === undefined) return;
        if (!before.isTemplate && isInFolderOf(truth, vcenter, before)) return;
        // Not a violation if users changed the machine less than `READ_MS` before the request to destroy it: the
        // operator may have read the machine before that change.
        const sent = sentAt.get(task ?? '') ?? 0;
        if ((takenAt.get(before.id) ?? Number.MAX_VALUE) < sent - READ_MS)
          violated(`${before.id} ('${before.name}') is destroyed`);
      });
    },
  };
}

/** Whether a machine is in the folder that is named after its group. */
function isInFolderOf(truth: Truth, vcenter: Vcenter, machine: Machine): boolean {
  const group = objectOf(truth, ownerOf(machine)?.uid ?? '')?.metadata;
  const folder = foldersIn(vcenter).find(({ ref }) => ref.value === machine.folder);
  return group !== undefined && folder?.name === `${group.namespace}-${group.name}`;
}

/**
 * Machines lose their ownership labels only if their group is deleted with policy Orphan. The operator does not destroy
 * the machines of such a group.
 */
export function orphanedOnlyWhenRequested(vcenter: Vcenter): Invariant {
  return {
    name: 'a machine is orphaned only when requested',
    watch: (truth, violated) => {
      const { schedule } = truth.simulation;
      const orphaned = new Map<string, { readonly since: number; readonly object: StoredObject }>();
      const addedAt = new Map<string, number>();
      onGroupChange(truth, (before, after) => {
        const isNew = after !== undefined && isDeleted(after) && (before === undefined || !isDeleted(before));
        if (isNew && isOrphaned(after))
          orphaned.set(after.metadata.uid ?? '', { since: schedule.now, object: after });
      });
      vcenter.machines.listen(({ before, after, cause }) => {
        if (before === undefined && after !== undefined) addedAt.set(after.id, schedule.now);
        const owner = before && ownerOf(before);
        if (before === undefined || owner === undefined || cause !== 'request') return;
        const object = objectOf(truth, owner.uid);
        const request = orphaned.get(owner.uid);
        // If a slot was already marked as terminating when the group was deleted, its machine is still removed.
        const mustStay = request !== undefined && slotOf(request.object, owner.slot)?.isTerminating !== true;
        const isOld = (addedAt.get(before.id) ?? 0) < (request?.since ?? 0);
        if (after === undefined && mustStay && isOld)
          violated(`${before.id} of ${owner.uid} is destroyed although its policy is Orphan`);
        if (object === undefined || after === undefined || ownerOf(after) !== undefined) return;
        if (request === undefined) violated(`${before.id} of ${nameOf(object)} has lost its labels`);
      });
    },
  };
}

/**
 * One status write starts the removal of at most maxUnavailable machines, in addition to those that exceed the replica
 * count.
 */
export const respectsMaxUnavailable: Invariant = {
  name: 'at most maxUnavailable machines are removed at once',
  watch: (truth, violated) =>
    onGroupChange(truth, (before, after) => {
      if (before === undefined || after === undefined || before.status === after.status) return;
      if (isDeleted(after) || readyOf(after).observedGeneration !== after.metadata.generation) return;
      const staying = slotsOf(before).filter(({ isTerminating }) => !isTerminating);
      // Counts only machines that the stored status reports as powered on, because a machine that a third party powered
      // off was already unavailable.
      const going = staying.filter(({ slot }) => {
        const { isTerminating = false, power } = slotOf(after, slot) ?? {};
        return isTerminating && power === 'poweredOn';
      });
      const { replicas, maxUnavailable } = wantedIn(after);
      const surplus = Math.max(staying.length - replicas, 0);
      if (going.length > maxUnavailable + surplus)
        violated(
          `${going.length} machines of ${nameOf(after)} are removed at the same time, but maxUnavailable is ${maxUnavailable}`,
        );
    }),
};

/**
 * Before a replica clones a machine, it stores the attempt in the machine's slot. It does not clone after it has marked
 * the slot as terminating.
 */
export const slotFirst: Invariant = {
  name: 'a machine is cloned only after its slot is stored',
  watch: (truth, violated) => {
    const intended = new Set<string>();
    let sender = '';
    truth.traffic.onArrival((sent) => {
      sender = sent.sender;
    });
    onGroupChange(truth, (before, after) => {
      if (before === undefined || after === undefined || same(before.status, after.status)) return;
      const { uid } = after.metadata;
      for (const { slot, attempts, isTerminating } of slotsOf(after)) {
        const key = `${sender} ${uid} ${slot}`;
        if (attempts > (slotOf(before, slot)?.attempts ?? 0) && !isTerminating) intended.add(key);
        else if (isTerminating) intended.delete(key);
      }
    });
    truth.traffic.onSend((sent) => {
      if (!isClone(sent)) return;
      const { uid, slot } = requestedOwner(sent);
      if (!intended.has(`${sent.sender} ${uid} ${slot}`))
        violated(`${sent.sender} clones a machine of ${uid}, slot ${slot}, without a stored attempt`);
    });
  },
};

/**
 * A group adds no slot beyond its number of replicas, not counting slots that are being removed. Each slot keeps its
 * UUID.
 */
export const slotsAreStable: Invariant = {
  name: 'slot count matches replicas and slots keep their UUID',
  watch: (truth, violated) => {
    const known = new Map<string, string>();
    onGroupChange(truth, (before, after) => {
      if (after === undefined || before?.status === after.status) return;
      const { uid, generation } = after.metadata;
      const slots = slotsOf(after);
      for (const { slot, instanceUuid } of slots) {
        const key = `${uid}/${slot}`;
        const was = known.get(key) ?? instanceUuid;
        if (was !== instanceUuid)
          violated(`UUID of slot ${slot} of ${nameOf(after)} changed from ${was} to ${instanceUuid}`);
        known.set(key, instanceUuid);
      }
      const staying = slots.filter(({ isTerminating }) => !isTerminating).length;
      const isCurrent = readyOf(after).observedGeneration === generation && !isDeleted(after);
      const grew = before !== undefined && slots.some(({ slot }) => slotOf(before, slot) === undefined);
      if (isCurrent && grew && staying > wantedIn(after).replicas)
        violated(`${nameOf(after)} has ${staying} slots for ${wantedIn(after).replicas} machines`);
    });
  },
};

/**
 * A leader runs at most `CONCURRENCY` clones at the same time. A clone runs while the response to its request is
 * pending and while its task is running. Clones that were requested before the leader was elected are ignored: a new
 * leader knows only the tasks that are stored in statuses, even if it led before.
 */
export function limitsConcurrency(vcenter: Vcenter): Invariant {
  return {
    name: `a leader runs at most ${CONCURRENCY} vCenter operations`,
    watch: (truth, violated) => {
      const pending = new Map<Sent, string | undefined>();
      const running = new Set<string>();
      let arriving: Sent | undefined;
      new Holder(truth, LEASE, (before) => {
        for (const sent of pending.keys()) if (before.startsWith(`${sent.sender}_`)) pending.delete(sent);
      });
      truth.traffic.onArrival((sent) => {
        arriving = sent;
      });
      vcenter.tasks.onBegin(({ ref }) => {
        running.add(ref.value);
        if (arriving !== undefined && pending.has(arriving)) pending.set(arriving, ref.value);
      });
      vcenter.tasks.onEnd(({ ref }) => running.delete(ref.value));
      truth.traffic.onEnd((sent) => {
        // Ignores a clone without a response, because the sender does not know the clone's task.
        if (sent.outcome === 'failed' || pending.get(sent) === undefined) pending.delete(sent);
      });
      truth.traffic.onSend((sent) => {
        if (!isClone(sent)) return;
        let busy = 1;
        for (const [other, task] of pending) {
          const isOver = other.outcome === 'answered' && (task === undefined || !running.has(task));
          if (isOver) pending.delete(other);
          else if (other.sender === sent.sender) busy += 1;
        }
        pending.set(sent, undefined);
        if (busy > CONCURRENCY) violated(`${sent.sender} runs ${busy} operations at the same time`);
      });
    },
  };
}

/** A replica sends requests that change vCenter only while it holds the lease. */
export const onlyTheLeaderChangesVcenter: Invariant = {
  name: 'only the leader changes vCenter',
  watch: (truth, violated) => {
    const holder = new Holder(truth, LEASE);
    truth.traffic.onSend((sent) => {
      if (isChange(sent) && !holder.is(sent.sender))
        violated(`${sent.sender} calls ${methodOf(sent)} while ${holder.identity || 'no replica'} leads`);
    });
  },
};

export const readyNeverGoesBack: Invariant = {
  name: 'observedGeneration never goes back',
  watch: (truth, violated) =>
    onGroupChange(truth, (before, after) => {
      if (before === undefined || after === undefined || before.status === after.status) return;
      const [was, is] = [readyOf(before).observedGeneration, readyOf(after).observedGeneration];
      if (is < was) violated(`observedGeneration of ${nameOf(after)} was ${was} and is ${is}`);
    }),
};

/** NameTaken is reported only if a machine outside the group has the name of one of the slots. */
export function nameTakenIsTrue(vcenter: Vcenter): Invariant {
  return {
    name: 'NameTaken is reported only when the name is taken',
    watch: (truth, violated) =>
      onGroupChange(truth, (before, after) => {
        if (after === undefined || readyOf(after).reason !== 'NameTaken') return;
        if (before !== undefined && readyOf(before).reason === 'NameTaken') return;
        const names = new Set(slotsOf(after).map(({ name }) => name));
        const isTaken = (machine: Machine) =>
          names.has(machine.name) && ownerOf(machine)?.uid !== after.metadata.uid;
        if (![...vcenter.machines.all()].some(isTaken))
          violated(`${nameOf(after)} reports NameTaken, but no other machine has a name of the group`);
      }),
  };
}

/** @param lines registers a listener for the log lines of all replicas */
export function passwordNotLogged(
  secret: string,
  lines: (listener: (line: string) => void) => void,
): Invariant {
  return {
    name: 'the password is not logged',
    watch: (_, violated) =>
      lines((line) => {
        if (line.includes(secret)) violated(line);
      }),
  };
}

function* machinesIn(
  vcenter: Vcenter,
  uid: string | undefined,
  slot: number,
): Generator<Machine, void, undefined> {
  for (const machine of vcenter.machines.all()) {
    const owner = ownerOf(machine);
    if (owner?.uid === uid && owner?.slot === slot) yield machine;
  }
}

const NO_MACHINE: Machine = {
  id: '',
  name: '',
  folder: '',
  instanceUuid: '',
  isTemplate: false,
  power: 'poweredOff',
  host: '',
  cpus: 0,
  memoryMb: 0,
  canAddCpus: false,
  canAddMemory: false,
  extraConfig: {},
  ip: undefined,
};
