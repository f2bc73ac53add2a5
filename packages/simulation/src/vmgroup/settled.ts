import type { StoredObject } from '../apiserver/object.ts';
import type { Truth } from '../invariants/invariant.ts';
import type { Machine } from '../vcenter/machine.ts';
import type { Vcenter } from '../vcenter/vcenter.ts';
import { folderOwnerOf, foldersIn, machinesOf, ownerOf, templateOf } from './external-resources.ts';
import { countIn, isPaused, phaseOf, readyOf, slotsOf, type Wanted, wantedIn } from './objects.ts';

/** Returns why a group has not converged; undefined if it has. */
export function problemOf(object: StoredObject, truth: Truth, vcenter: Vcenter): string | undefined {
  if (isPaused(object)) return undefined;
  const isFine = machineProblem(object, vcenter) === undefined;
  // If another group owns the folder, this group reports FolderTaken. Exception: this group already had all its
  // machines in the folder when the other group was recorded as the owner of the folder.
  const problem =
    isTaken(object, truth, vcenter) && !isFine ? folderProblem(object) : machineProblem(object, vcenter);
  return problem && `${problem}, but its status is ${JSON.stringify(object.status)}`;
}

/** Returns whether the folder with this group's name is owned by another group that still exists. */
function isTaken({ metadata }: StoredObject, { server, kind }: Truth, vcenter: Vcenter): boolean {
  const name = `${metadata.namespace}-${metadata.name}`;
  const folder = foldersIn(vcenter).find((each) => each.name === name);
  const owner = folder && folderOwnerOf(vcenter, folder);
  if (owner === undefined || owner === metadata.uid) return false;
  return [...server.objects(kind)].some((each) => each.metadata.uid === owner);
}

function folderProblem(object: StoredObject): string | undefined {
  const { reason } = readyOf(object);
  const isNothing = wantedIn(object).replicas === 0;
  return reason === 'FolderTaken' || isNothing ? undefined : 'its folder belongs to another group';
}

function machineProblem(object: StoredObject, vcenter: Vcenter): string | undefined {
  const wanted = wantedIn(object);
  const machines = machinesOf(vcenter, object.metadata.uid ?? '');
  if (machines.length !== wanted.replicas) return `it has ${machines.length} of ${wanted.replicas} machines`;
  for (const machine of machines) {
    const wrong = wrongWith(machine, wanted);
    if (wrong !== undefined) return `${machine.id} ${wrong}`;
  }
  const ready = readyOf(object);
  if (phaseOf(object) !== 'RUNNING' || ready.status !== 'True')
    return 'its machines run, so it must be RUNNING and Ready';
  for (const name of ['currentReplicas', 'desiredReplicas', 'readyReplicas'])
    if (countIn(object, name) !== wanted.replicas) return `its ${name} is not ${wanted.replicas}`;
  return statusProblem(object, machines);
}

function wrongWith(machine: Machine, wanted: Wanted): string | undefined {
  if (machine.power !== 'poweredOn') return `is ${machine.power}`;
  if (!wanted.isRolling) return undefined;
  if (machine.cpus !== wanted.cpus || machine.memoryMb !== wanted.memoryMb)
    return `has ${machine.cpus} CPUs and ${machine.memoryMb} MB`;
  return templateOf(machine) === wanted.template ? undefined : `is from ${templateOf(machine)}`;
}

function statusProblem(object: StoredObject, machines: readonly Machine[]): string | undefined {
  const slots = slotsOf(object);
  if (slots.length !== machines.length) return `its status lists ${slots.length} machines`;
  for (const machine of machines) {
    const reported = slots.find(({ slot }) => slot === ownerOf(machine)?.slot);
    const isTrue =
      reported?.power === machine.power && reported.name === machine.name && !reported.isTerminating;
    if (!isTrue || reported.task !== undefined) return `its status is wrong about ${machine.id}`;
  }
  return undefined;
}
