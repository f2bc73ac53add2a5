import { VirtualMachine, VMDiskImage } from '@vmwright/operator';
import type { ApiServer } from '../apiserver/api-server.ts';
import type { StoredObject } from '../apiserver/object.ts';
import type { Invariant } from '../invariants/invariant.ts';
import { Claim, Instance, Machine, Secret, Snapshot, Volume } from '../kubevirt/kinds.ts';
import {
  byKey,
  byUid,
  conditionOf,
  controllerOf,
  find,
  isPaused,
  isTerminating,
  keyOf,
  listAt,
  numberAt,
  phaseIn,
  textAt,
} from '../scenario/stored-objects.ts';
import type { Foreign } from './foreign.ts';
import { imageOf, isOrphaned, snapshotsIn } from './objects.ts';
import type { References } from './references.ts';
import { isMissing } from './user.ts';

/** After the faults have stopped, every image and machine reaches the state that its spec requires. */
export function converged(references: References): Invariant {
  return {
    name: 'converged',
    healed: function* ({ server }) {
      for (const image of server.objects(VMDiskImage)) {
        const problem = imageProblem(server, image, references.of(image).length > 0);
        if (problem !== undefined)
          yield `image ${keyOf(image)}: ${problem}, status ${JSON.stringify(image.status)}`;
      }
      for (const machine of server.objects(VirtualMachine)) {
        const problem = machineProblem(server, machine);
        if (problem !== undefined)
          yield `machine ${keyOf(machine)}: ${problem}, status ${JSON.stringify(machine.status)}`;
      }
    },
  };
}

function imageProblem(server: ApiServer, image: StoredObject, isReferenced: boolean): string | undefined {
  if (isPaused(image)) return 'it is paused';
  if (isTerminating(image)) {
    if (!isReferenced) return `it is held by ${image.metadata.finalizers?.join(', ')}`;
    return conditionOf(image, 'DeletionBlocked')?.status === 'True'
      ? undefined
      : 'DeletionBlocked is not True';
  }
  if (isBehind(image)) return 'its status describes an older spec';
  switch (phaseIn(image)) {
    case 'Ready':
      if (!hasData(server, image)) return 'it has no data';
      return !isReferenced && isPruned(image) ? 'it must be pruned' : undefined;
    case 'Failed':
      return isMissing(image) && textAt(image, 'status', 'message')
        ? undefined
        : 'it has failed, but its source exists';
    default:
      return 'it is not Ready';
  }
}

function isBehind(object: StoredObject): boolean {
  return numberAt(object, 'status', 'observedGeneration') !== object.metadata.generation;
}

/** Whether an unreferenced image must be pruned within the run. An image with the deletion policy Orphan is kept. */
function isPruned(image: StoredObject): boolean {
  if (isOrphaned(image)) return false;
  const { keep, pruneAfter }: { keep?: unknown; pruneAfter?: unknown } = Object(
    Object(image.spec).retention ?? {},
  );
  return keep !== true && pruneAfter !== undefined;
}

function hasData(server: ApiServer, image: StoredObject): boolean {
  const { namespace, uid } = image.metadata;
  const name = textAt(image, 'status', 'dataVolume') ?? '';
  const volume = find(server, Volume, namespace, name);
  const snapshots = snapshotsIn(image).map((each) => find(server, Snapshot, namespace, each));
  return (
    volume !== undefined &&
    controllerOf(volume) === uid &&
    phaseIn(volume) === 'Succeeded' &&
    find(server, Claim, namespace, name) !== undefined &&
    snapshots.length > 0 &&
    snapshots.every((each) => JSON.stringify(each?.status)?.includes('"readyToUse":true') ?? false)
  );
}

function machineProblem(server: ApiServer, machine: StoredObject): string | undefined {
  if (isPaused(machine)) return 'it is paused';
  if (isTerminating(machine)) return `it is held by ${machine.metadata.finalizers?.join(', ')}`;
  if (isBehind(machine)) return 'its status describes an older spec';
  if (!textAt(machine, 'status', 'message')) return 'it has no message';
  const reason = conditionOf(machine, 'Ready')?.reason ?? '';
  if (phaseIn(machine) === 'Ready') return readyProblem(server, machine);
  return isExcused(server, machine, reason)
    ? undefined
    : `it is not Ready, with the unexpected reason ${reason}`;
}

/** Whether the reason in the status really prevents the machine from becoming Ready. */
function isExcused(server: ApiServer, machine: StoredObject, reason: string): boolean {
  const image = byKey(server, VMDiskImage, imageOf(machine));
  const { uid, namespace, name } = machine.metadata;
  switch (reason) {
    case 'NameConflict':
      return [
        find(server, Machine, namespace, name),
        find(server, Secret, namespace, `${name}-cloudinit`),
        find(server, Volume, namespace, textAt(machine, 'status', 'dataVolume') ?? ''),
      ].some((each) => each !== undefined && controllerOf(each) !== uid);
    case 'AddressConflict':
      return server
        .objects(VirtualMachine)
        .some(
          (each) =>
            each.metadata.uid !== uid && addressesOf(each).some((one) => addressesOf(machine).includes(one)),
        );
    case 'ImageFailed':
      return phaseIn(image) === 'Failed';
    case 'ImageNotFound':
      return (
        image === undefined && textAt(machine, 'spec', 'vmDiskImageTemplate', 'sourceType') === undefined
      );
    default:
      // A user deleted the image before it was Ready. The deletion cannot finish, because the machine still names the
      // image.
      return image !== undefined && isTerminating(image) && phaseIn(image) !== 'Ready';
  }
}

function addressesOf(machine: StoredObject): readonly string[] {
  return listAt(machine, 'spec', 'interfaces').map((each) => textAt(each, 'ipAddress') ?? '');
}

function readyProblem(server: ApiServer, machine: StoredObject): string | undefined {
  const { uid, namespace, name } = machine.metadata;
  const child = find(server, Machine, namespace, name);
  if (child === undefined || controllerOf(child) !== uid) return 'it has no KubeVirt VirtualMachine';
  const shouldRun = Object(machine.spec).ignoreOnDeploy !== true;
  const printed = textAt(child, 'status', 'printableStatus');
  if (printed !== (shouldRun ? 'Running' : 'Stopped')) return `its machine is ${printed}`;
  const stale = staleField(machine, child, find(server, Instance, namespace, name));
  if (stale !== undefined) return `${stale} does not describe its machine`;
  if (textAt(child, 'spec', 'runStrategy') !== (shouldRun ? 'Always' : 'Halted'))
    return 'its runStrategy was changed';
  const cores = numberAt(child, 'spec', 'template', 'spec', 'domain', 'cpu', 'cores');
  if (cores !== numberAt(machine, 'spec', 'resources', 'cpu')) return `its template has ${cores} cores`;
  const disk = find(server, Volume, namespace, textAt(machine, 'status', 'dataVolume') ?? '');
  if (disk === undefined || controllerOf(disk) !== uid || phaseIn(disk) !== 'Succeeded')
    return 'its root disk is missing';
  if (find(server, Claim, namespace, disk.metadata.name) === undefined) return 'its claim is missing';
  const secret = find(server, Secret, namespace, `${name}-cloudinit`);
  if (secret === undefined || controllerOf(secret) !== uid) return 'its Secret is missing';
  return JSON.stringify(secret).includes('Y2hhbmdlZA==') ? 'its Secret was changed' : undefined;
}

/**
 * Returns the name of a status field or condition that differs from KubeVirt's status, for example because a watch of
 * the operator stalled. Returns undefined if there is none.
 */
function staleField(
  machine: StoredObject,
  child: StoredObject,
  instance: StoredObject | undefined,
): string | undefined {
  if (textAt(machine, 'status', 'printableStatus') !== textAt(child, 'status', 'printableStatus'))
    return 'printableStatus';
  if (textAt(machine, 'status', 'node') !== textAt(instance, 'status', 'nodeName')) return 'node';
  if (conditionOf(machine, 'VolumeReady')?.status !== 'True') return 'VolumeReady';
  const isRequired = conditionOf(child, 'RestartRequired')?.status === 'True';
  return (conditionOf(machine, 'RestartRequired')?.status === 'True') === isRequired
    ? undefined
    : 'RestartRequired';
}

/** Returns the invariant that every object of the operator belongs to an image or machine that needs it. */
export function nothingStray(foreign: Foreign): Invariant {
  return {
    name: 'no stray object',
    healed: function* ({ server }) {
      const owners = [VirtualMachine, VMDiskImage, Volume, Machine];
      for (const kind of [Machine, Instance, Volume, Claim, Snapshot, Secret])
        for (const object of server.objects(kind)) {
          const what = `${object.kind} ${keyOf(object)}`;
          if (!foreign.isOurs(object)) continue;
          const uid = controllerOf(object);
          if (!owners.some((each) => byUid(server, each, uid) !== undefined))
            yield `${what} has lost its owner`;
          if (isTerminating(object)) yield `${what} is held by ${object.metadata.finalizers?.join(', ')}`;
          const image = byUid(server, VMDiskImage, uid);
          if (image !== undefined && !isCurrent(image, object))
            yield `${what} is not in the status of its image`;
          const machine = byUid(server, VirtualMachine, uid);
          if (
            kind === Volume &&
            machine !== undefined &&
            textAt(machine, 'status', 'dataVolume') !== object.metadata.name
          )
            yield `${what} is not in the status of its machine`;
        }
    },
  };
}

/** Whether the status of the image names the child. False for a failed image, which must not have children. */
function isCurrent(image: StoredObject, { metadata: { name } }: StoredObject): boolean {
  if (phaseIn(image) === 'Failed') return false;
  return textAt(image, 'status', 'dataVolume') === name || snapshotsIn(image).includes(name);
}
