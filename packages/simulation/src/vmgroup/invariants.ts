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
import { foldersIn, marksOf, type Owner, ownerOf } from './outside.ts';
import { CONCURRENCY } from './program.ts';
import { isChange, isClone, methodOf, ownerAsked } from './requests.ts';

/* What is promised of VmGroups beyond what is promised of all objects that stand for something outside. */

/** By whatever a machine is told from others. What people copy by hand is theirs. */
export function oneMachineASlot(vcenter: Vcenter): Invariant {
  return {
    name: 'at most one machine per group and slot, and per UUID',
    watch: (_, violated) =>
      vcenter.machines.listen(({ before, after, cause }) => {
        const made = before === undefined && cause === 'request' ? after : undefined;
        const owner = made && marksOf(made);
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

/** Between a look into a folder and the request to destroy it: the answer's way. */
const LOOK_MS = 13_000;

/**
 * Machines that the operator has not made, or has let go, are left alone. One that comes into a folder just as the folder
 * goes may leave the inventory with it, since vCenter cannot remove a folder only if it is empty; its files stay.
 */
export function foreignMachinesLeftAlone(vcenter: Vcenter): Invariant {
  return {
    name: 'foreign machines are never touched',
    watch: ({ traffic, simulation }, violated) => {
      const ours = new Set<string>();
      const cameAt = new Map<string, number>();
      const askedAt = new Map<string, number>();
      const sentAt = new Map<string, number>();
      const letGoAt = new Map<string, number>();
      let landing: Sent | undefined;
      traffic.onLand((sent) => {
        landing = sent;
      });
      vcenter.tasks.onBegin(({ ref, on }) => {
        (on.type === 'Folder' ? askedAt : sentAt).set(ref.value, landing?.at ?? 0);
      });
      vcenter.machines.listen(({ before, after, cause, task, isUnregistered }) => {
        if (after !== undefined && before?.folder !== after.folder)
          cameAt.set(after.id, simulation.schedule.now);
        if (cause !== 'request') return;
        if (before === undefined) {
          if (after !== undefined && marksOf(after) !== undefined) ours.add(after.id);
          return;
        }
        const isJustIn =
          isUnregistered === true &&
          (cameAt.get(before.id) ?? 0) > (askedAt.get(task ?? '') ?? Number.MAX_VALUE) - LOOK_MS;
        // It was leaving: that was asked for before it was let go of with the others, and has come late.
        const wasAsked = (sentAt.get(task ?? '') ?? Number.MAX_VALUE) < (letGoAt.get(before.id) ?? 0);
        if (!ours.has(before.id) && !isJustIn && !wasAsked)
          violated(`${before.id} ('${before.name}') is ${after ? 'changed' : 'destroyed'}`);
        if (after === undefined || marksOf(after) !== undefined || !ours.delete(after.id)) return;
        letGoAt.set(after.id, simulation.schedule.now);
      });
    },
  };
}

/** A machine goes only after it was stored that it does: in its group's status, or by the group's own deletion. */
export function noWantedMachineDestroyed(vcenter: Vcenter): Invariant {
  return {
    name: 'no wanted machine is destroyed',
    watch: (truth, violated) => {
      const doomed = new Set<string>();
      const deleted = deletedUids(truth);
      const isLeaving = (owner: Owner) => {
        const object = objectOf(truth, owner.uid);
        return object !== undefined && slotOf(object, owner.slot)?.isLeaving === true;
      };
      onGroupChange(truth, (before, after) => {
        if (after === undefined || before?.status === after.status) return;
        for (const { slot, isLeaving: goes } of slotsOf(after))
          if (goes)
            for (const machine of machinesIn(vcenter, after.metadata.uid, slot)) doomed.add(machine.id);
      });
      vcenter.machines.listen(({ before, after, cause }) => {
        const owner = (after ?? before) && ownerOf(after ?? before ?? NOBODY);
        if (owner === undefined) return;
        if (before === undefined && after !== undefined && isLeaving(owner)) doomed.add(after.id);
        if (before === undefined || after !== undefined || cause !== 'request' || doomed.has(before.id))
          return;
        const object = objectOf(truth, owner.uid);
        if (object === undefined && !deleted.has(owner.uid))
          violated(`${before.id} of ${owner.uid} is destroyed, which was never deleted itself`);
        if (object !== undefined && !isDeleted(object))
          violated(`${before.id} of ${nameOf(object)}, slot ${owner.slot}, is destroyed`);
      });
    },
  };
}

/** Between the answer that proves a machine gone and the status write that drops its slot, a late clone can land. */
const PROOF_MS = 20_000;

/** A slot is dropped only when its machine is gone or no longer carries the group's labels, wherever people moved it. */
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

/** A machine that people moved to another folder, or turned into a template, stays while its group exists. */
export function takenOverMachinesStay(vcenter: Vcenter): Invariant {
  return {
    name: 'machines that users moved or turned into templates are not destroyed',
    watch: (truth, violated) => {
      const { traffic, simulation } = truth;
      const takenAt = new Map<string, number>();
      const sentAt = new Map<string, number>();
      let landing: Sent | undefined;
      traffic.onLand((sent) => {
        landing = sent;
      });
      vcenter.tasks.onBegin(({ ref }) => sentAt.set(ref.value, landing?.at ?? 0));
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
        // What happens between the last look and the request cannot be helped.
        const sent = sentAt.get(task ?? '') ?? 0;
        if ((takenAt.get(before.id) ?? Number.MAX_VALUE) < sent - LOOK_MS)
          violated(`${before.id} ('${before.name}') is destroyed`);
      });
    },
  };
}

/** Whether a machine is in the folder that its group's name calls for. */
function isInFolderOf(truth: Truth, vcenter: Vcenter, machine: Machine): boolean {
  const group = objectOf(truth, ownerOf(machine)?.uid ?? '')?.metadata;
  const folder = foldersIn(vcenter).find(({ ref }) => ref.value === machine.folder);
  return group !== undefined && folder?.name === `${group.namespace}-${group.name}`;
}

/** A group whose machines are to stay loses its marks on them, and nothing else. */
export function letGoOnlyWhenAsked(vcenter: Vcenter): Invariant {
  return {
    name: 'a machine is orphaned only when requested',
    watch: (truth, violated) => {
      const { schedule } = truth.simulation;
      const letGo = new Map<string, { readonly since: number; readonly object: StoredObject }>();
      const cameAt = new Map<string, number>();
      onGroupChange(truth, (before, after) => {
        const isNew = after !== undefined && isDeleted(after) && (before === undefined || !isDeleted(before));
        if (isNew && isOrphaned(after))
          letGo.set(after.metadata.uid ?? '', { since: schedule.now, object: after });
      });
      vcenter.machines.listen(({ before, after, cause }) => {
        if (before === undefined && after !== undefined) cameAt.set(after.id, schedule.now);
        const owner = before && ownerOf(before);
        if (before === undefined || owner === undefined || cause !== 'request') return;
        const object = objectOf(truth, owner.uid);
        const asked = letGo.get(owner.uid);
        // One that was leaving when the others were let go goes.
        const isToStay = asked !== undefined && slotOf(asked.object, owner.slot)?.isLeaving !== true;
        const isOld = (cameAt.get(before.id) ?? 0) < (asked?.since ?? 0);
        if (after === undefined && isToStay && isOld)
          violated(`${before.id} of ${owner.uid} is destroyed, and was to stay`);
        if (object === undefined || after === undefined || ownerOf(after) !== undefined) return;
        if (asked === undefined) violated(`${before.id} of ${nameOf(object)} is not marked any more`);
      });
    },
  };
}

/** No more leave at a time than may be away, beside those that are too many. */
export const fewLeaveAtATime: Invariant = {
  name: 'no more machines are removed at once than maxUnavailable',
  watch: (truth, violated) =>
    onGroupChange(truth, (before, after) => {
      if (before === undefined || after === undefined || before.status === after.status) return;
      if (isDeleted(after) || readyOf(after).observedGeneration !== after.metadata.generation) return;
      const staying = slotsOf(before).filter(({ isLeaving }) => !isLeaving);
      // By what was seen when it was decided: one that strangers have switched off since was away before.
      const going = staying.filter(({ slot }) => {
        const { isLeaving = false, power } = slotOf(after, slot) ?? {};
        return isLeaving && power === 'poweredOn';
      });
      const { replicas, mostAway } = wantedIn(after);
      const surplus = Math.max(staying.length - replicas, 0);
      if (going.length > mostAway + surplus)
        violated(`${going.length} machines of ${nameOf(after)} leave, and ${mostAway} may be away`);
    }),
};

/** Who asks for a machine has stored so, over the version that it has read, and has not stored anything else of its slot since. */
export const slotFirst: Invariant = {
  name: 'a machine is cloned only after its slot is stored',
  watch: (truth, violated) => {
    const intended = new Set<string>();
    let sender = '';
    truth.traffic.onLand((sent) => {
      sender = sent.sender;
    });
    onGroupChange(truth, (before, after) => {
      if (before === undefined || after === undefined || same(before.status, after.status)) return;
      const { uid } = after.metadata;
      for (const { slot, attempts, isLeaving } of slotsOf(after)) {
        const key = `${sender} ${uid} ${slot}`;
        if (attempts > (slotOf(before, slot)?.attempts ?? 0) && !isLeaving) intended.add(key);
        else if (isLeaving) intended.delete(key);
      }
    });
    truth.traffic.onSend((sent) => {
      if (!isClone(sent)) return;
      const { uid, slot } = ownerAsked(sent);
      if (!intended.has(`${sent.sender} ${uid} ${slot}`))
        violated(`${sent.sender} asks for a machine of ${uid}, slot ${slot}, and has not stored that`);
    });
  },
};

/** No more slots than wanted machines, except for those that leave; and each keeps its UUID. */
export const slotsAreSteady: Invariant = {
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
          violated(`slot ${slot} of ${nameOf(after)} was ${was} and is ${instanceUuid}`);
        known.set(key, instanceUuid);
      }
      const staying = slots.filter(({ isLeaving }) => !isLeaving).length;
      const isCurrent = readyOf(after).observedGeneration === generation && !isDeleted(after);
      const grew = before !== undefined && slots.some(({ slot }) => slotOf(before, slot) === undefined);
      if (isCurrent && grew && staying > wantedIn(after).replicas)
        violated(`${nameOf(after)} has ${staying} slots for ${wantedIn(after).replicas} machines`);
    });
  },
};

/**
 * Tasks that a leader knows of, and what it has asked for without an answer yet. Folders and strays go by themselves. In a
 * new term a leader knows only the tasks that are stored, also where it led before.
 */
export function notTooBusy(vcenter: Vcenter): Invariant {
  return {
    name: `a leader runs at most ${CONCURRENCY} vCenter operations`,
    watch: (truth, violated) => {
      const asked = new Map<Sent, string | undefined>();
      const running = new Set<string>();
      let landing: Sent | undefined;
      new Holder(truth, LEASE, (before) => {
        for (const sent of asked.keys()) if (before.startsWith(`${sent.sender}_`)) asked.delete(sent);
      });
      truth.traffic.onLand((sent) => {
        landing = sent;
      });
      vcenter.tasks.onBegin(({ ref }) => {
        running.add(ref.value);
        if (landing !== undefined && asked.has(landing)) asked.set(landing, ref.value);
      });
      vcenter.tasks.onEnd(({ ref }) => running.delete(ref.value));
      truth.traffic.onEnd((sent) => {
        // Who has no answer knows of no task.
        if (sent.seen === 'that none comes' || asked.get(sent) === undefined) asked.delete(sent);
      });
      truth.traffic.onSend((sent) => {
        if (!isClone(sent)) return;
        let busy = 1;
        for (const [other, task] of asked) {
          const isOver = other.seen === 'an answer' && (task === undefined || !running.has(task));
          if (isOver) asked.delete(other);
          else if (other.sender === sent.sender) busy += 1;
        }
        asked.set(sent, undefined);
        if (busy > CONCURRENCY) violated(`${sent.sender} asks for the ${busy}th at a time`);
      });
    },
  };
}

/** Who changes vCenter holds the lease at the moment of sending. */
export const onlyTheLeaderChanges: Invariant = {
  name: 'only the leader changes vCenter',
  watch: (truth, violated) => {
    const holder = new Holder(truth, LEASE);
    truth.traffic.onSend((sent) => {
      if (isChange(sent) && !holder.is(sent.sender))
        violated(`${sent.sender} calls ${methodOf(sent)} while ${holder.identity || 'nobody'} leads`);
    });
  },
};

export const readyNeverGoesBack: Invariant = {
  name: 'observedGeneration never goes back',
  watch: (truth, violated) =>
    onGroupChange(truth, (before, after) => {
      if (before === undefined || after === undefined || before.status === after.status) return;
      const [was, is] = [readyOf(before).observedGeneration, readyOf(after).observedGeneration];
      if (is < was) violated(`that of ${nameOf(after)} was ${was} and is ${is}`);
    }),
};

/** A name is told as taken only where a machine that is not the group's has it. */
export function takenMeansTaken(vcenter: Vcenter): Invariant {
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
          violated(`no machine has a name of ${nameOf(after)}'s`);
      }),
  };
}

/** @param lines told of each line that is logged */
export function notLogged(secret: string, lines: (tell: (line: string) => void) => void): Invariant {
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

const NOBODY: Machine = {
  ...{ id: '', name: '', folder: '', instanceUuid: '', isTemplate: false, power: 'poweredOff', host: '' },
  ...{ cpus: 0, memoryMb: 0, canAddCpus: false, canAddMemory: false, extraConfig: {}, ip: undefined },
};
