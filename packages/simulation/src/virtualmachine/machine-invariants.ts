import { VirtualMachine } from '@vmwright/operator';
import { fieldAt, isJson } from '../apiserver/json.ts';
import type { StoredObject } from '../apiserver/object.ts';
import type { Invariant } from '../invariants/invariant.ts';
import { Claim, Instance, Machine, Secret, Volume } from '../kubevirt/kinds.ts';
import {
  byUid,
  controllerOf,
  find,
  isOf,
  isTerminating,
  keyOf,
  listAt,
  onChange,
  phaseIn,
  textAt,
} from '../scenario/stored-objects.ts';
import {
  controllerIn,
  onOperatorCreate,
  onOperatorDelete,
  onOperatorSend,
  requiredUid,
} from './operator-writes.ts';
import { PASSWORD, PASSWORDS } from './user.ts';

/**
 * A VirtualMachine has at most one KubeVirt VirtualMachine, one root disk and one Secret, no matter which replicas
 * create them. A disk is ignored if the status does not name it and its clone has not succeeded, because the operator
 * is about to delete such a disk.
 */
export const oneOfEach: Invariant = {
  name: 'at most one child of a kind per machine',
  watch: (truth, violated) => {
    for (const kind of [Machine, Volume, Secret])
      onOperatorCreate(truth, kind, (created) => {
        const uid = controllerOf(created);
        const machine = byUid(truth.server, VirtualMachine, uid);
        if (machine === undefined) return;
        const current = textAt(machine, 'status', 'dataVolume');
        const isReplaced = (each: StoredObject) =>
          kind === Volume && phaseIn(each) !== 'Succeeded' && each.metadata.name !== current;
        const live = truth.server
          .objects(kind)
          .filter((each) => controllerOf(each) === uid && !isTerminating(each) && !isReplaced(each))
          .map(keyOf)
          .toArray();
        if (live.length > 1) violated(`${uid} has ${live.join(' and ')}`);
      });
  },
};

/** After the faults have stopped, of all machines with the same address on the same network, at most one runs. */
export const oneAddressEach: Invariant = {
  name: 'one machine per address',
  healed: function* ({ server }) {
    const holders = new Map<string, string>();
    for (const machine of server.objects(VirtualMachine)) {
      const { namespace, name } = machine.metadata;
      const child = find(server, Machine, namespace, name);
      if (child === undefined || controllerOf(child) !== machine.metadata.uid) continue;
      if (textAt(child, 'spec', 'runStrategy') === 'Halted') continue;
      for (const each of listAt(machine, 'spec', 'interfaces')) {
        const address = `${textAt(each, 'network')} ${textAt(each, 'ipAddress')}`;
        const holder = holders.get(address);
        if (holder !== undefined) yield `${keyOf(machine)} and ${holder} run with ${address}`;
        holders.set(address, keyOf(machine));
      }
    }
  },
};

/**
 * A cloned root disk contains the user's data. The operator deletes the disk only together with its machine, or after
 * the claim with the data is gone.
 */
export const rootDiskKept: Invariant = {
  name: 'a cloned root disk is kept',
  watch: (truth, violated) =>
    onOperatorDelete(truth, Volume, (volume) => {
      const machine = byUid(truth.server, VirtualMachine, controllerOf(volume));
      if (machine === undefined || isTerminating(machine) || phaseIn(volume) !== 'Succeeded') return;
      const { namespace, name } = volume.metadata;
      if (find(truth.server, Claim, namespace, name) !== undefined)
        violated(`${keyOf(volume)} of ${keyOf(machine)} is deleted`);
    }),
};

/**
 * A root disk is a clone of a snapshot of the image. Before the operator creates the disk, it stores the name of this
 * snapshot in the status of the VirtualMachine, so that the clone already counts against maxClones.
 */
export const choiceStoredFirst: Invariant = {
  name: 'the choice of a snapshot is stored before the clone is created',
  watch: (truth, violated) =>
    onOperatorSend(truth, Volume, (body) => {
      const machine = byUid(truth.server, VirtualMachine, controllerIn(body));
      if (machine === undefined) return;
      const [stored, sent] = [
        textAt(machine, 'status', 'snapshot'),
        textAt(body, 'spec', 'source', 'snapshot', 'name'),
      ];
      if (stored !== sent) violated(`a clone of ${sent} is sent for ${keyOf(machine)}, which has ${stored}`);
    }),
};

/** Values of `printableStatus` of a KubeVirt VirtualMachine that a restart can resolve. */
const STUCK: readonly string[] = ['ErrorPvcNotFound', 'DataVolumeError', 'CrashLoopBackOff'];
/**
 * Minimum time from when a machine gets stuck until it is restarted. It is also the minimum time between two restarts
 * if the machine was not Ready in between.
 */
const RESTART_MS = 10_000;
/**
 * Tolerance for early restarts. Times in the status are rounded to seconds, and timers of the operator may fire early.
 */
const ROUNDING_MS = 1_000;

/**
 * The operator restarts a stuck machine with a back-off. To restart it, the operator deletes its
 * VirtualMachineInstance by UID, so that a late request does not stop the next instance.
 */
export const restartsBackOff: Invariant = {
  name: 'restarts back off',
  watch: (truth, violated) => {
    const { schedule, counts } = truth.simulation;
    const restartedAt = new Map<string, number>();
    onChange(truth.server, VirtualMachine, (_, after) => {
      if (phaseIn(after) === 'Ready') restartedAt.delete(after?.metadata.uid ?? '');
    });
    const stuckSince = new Map<string, number>();
    onChange(truth.server, Machine, (_, after) => {
      const owner = after && controllerOf(after);
      if (after === undefined || owner === undefined) return;
      if (!STUCK.includes(textAt(after, 'status', 'printableStatus') ?? '')) stuckSince.delete(owner);
      else if (!stuckSince.has(owner)) stuckSince.set(owner, schedule.now);
    });
    onOperatorDelete(truth, Instance, (instance, sent) => {
      counts.add('the operator restarted a machine');
      if (requiredUid(sent) !== instance.metadata.uid)
        violated(`${keyOf(instance)} is deleted without its UID as a precondition`);
      const machine = byUid(truth.server, Machine, controllerOf(instance));
      const owner = byUid(truth.server, VirtualMachine, machine && controllerOf(machine));
      if (owner === undefined || textAt(owner, 'spec', 'updatePolicy') === 'Restart') return;
      const { uid = '' } = owner.metadata;
      const last = restartedAt.get(uid) ?? Number.NEGATIVE_INFINITY;
      restartedAt.set(uid, sent.at);
      const passed = sent.at - Math.max(last, stuckSince.get(uid) ?? 0);
      if (passed < RESTART_MS - ROUNDING_MS && counts.of('a clock jumped') === 0)
        violated(
          `${keyOf(owner)} is restarted ${passed} ms after it got stuck or was restarted, at ${schedule.now} ms`,
        );
    });
  },
};

/** @param lines registers a listener for the log lines of all replicas */
export function passwordStaysSecret(lines: (listener: (line: string) => void) => void): Invariant {
  return {
    name: 'the password stays secret',
    watch: ({ server }, violated) => {
      lines((line) => {
        if (line.includes(PASSWORD)) violated(line);
      });
      server.listen(({ resource, key, after }) => {
        if (after === undefined || isOf(resource, VirtualMachine)) return;
        if (isOf(resource, Secret)) {
          if (key === `${PASSWORDS.namespace}/${PASSWORDS.name}`) return;
          const data = fieldAt(after.object, ['data']);
          for (const value of Object.values(isJson(data) ? data : {}))
            if (Buffer.from(String(value), 'base64').includes(PASSWORD))
              violated(`Secret ${key} contains the password`);
        } else if (after.text(false).includes(PASSWORD))
          violated(`${resource.kind.kind} ${key} contains the password`);
      });
    },
  };
}
